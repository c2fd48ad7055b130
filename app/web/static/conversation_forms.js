// Forms that change the open conversation, sent without leaving the page.

import * as keys from "./keys.js";
import { reload } from "./panes.js";
import { reachNext } from "./rows.js";
import { posted, talk, tell } from "./talks.js";

// Submits form.in-place, and forms that change a conversation, without leaving the page, and announces the result.
// After a refusal, the menu is open again with its values.
addEventListener("submit", async (event) => {
  const form = event.target;
  if (!form.matches("form.in-place, #talk form[data-once][action*='/change']")) return;
  event.preventDefault();
  if (form.ariaBusy) return;
  form.ariaBusy = "true";
  const data = new FormData(form, event.submitter);
  const menu = form.closest("details");
  const { id } = talk();
  if (["close", "snooze"].includes(data.get("do"))) {
    if (menu) menu.open = false;
    reachNext([id]);
  }
  const { status, body } = await posted(form.action, data);
  form.ariaBusy = null;
  form.elements.once.value = crypto.randomUUID();
  const refusal = status < 300 ? "" : Object.values(body.errors ?? { "": body.detail ?? "This could not be done." }).join(" ");
  if (menu?.isConnected && refusal) {
    menu.open = true;
    if (!keys.isField(document.activeElement)) keys.enter(menu);
  } else if (menu?.open) keys.close(menu);
  if (!refusal && talk().id === id) await reload();
  tell(refusal || body.done || "This is accepted, and done in a moment.", refusal ? "error" : "good");
}, true);
