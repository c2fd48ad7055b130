// The pane beside a conversation: its forms are sent without leaving the page, and the server renders it again.

import { all, byId, made, page, parsed } from "./dom.js";
import { posted, talk, tell } from "./talks.js";
import { localize } from "./times.js";

addEventListener("submit", async (event) => {
  const form = event.target;
  const side = form.closest("#side");
  if (!side) return;
  event.preventDefault();
  if (form.ariaBusy) return;
  form.ariaBusy = "true";
  const field = document.activeElement?.id || null;
  const { status, body } = await posted(form.action, new FormData(form, event.submitter));
  form.ariaBusy = null;
  if (!body.pane) return tell(body.detail ?? "This could not be done.", "error");
  if (!side.isConnected) return; // another conversation is shown now
  redraw(side, parsed(body.pane).getElementById("side"), field);
  tell(body.said, status < 300 ? "good" : "error");
}, true);
const redraw = (side, fresh, field) => {
  localize(fresh);
  side.replaceWith(fresh);
  (fresh.querySelector("[aria-invalid]") ?? (field && byId(field)) ?? fresh.querySelector("summary"))?.focus();
  // The contact may have a new name.
  const { name } = fresh.dataset;
  talk().name = name;
  for (const each of all(`.top h2 bdi, #row-${talk().id} .name`)) each.textContent = name;
};

// Suggested tags, fetched when somebody is about to add one.
addEventListener("focusin", async ({ target }) => {
  const address = target.dataset?.tags;
  if (!address) return;
  delete target.dataset.tags;
  const response = await fetch(address, { headers: { Accept: "application/json" } }).catch(() => null);
  if (response?.ok) target.list.replaceChildren(...(await response.json()).map((value) => made("option", { value })));
});

// details[data-fill]: the content is fetched when it is opened.
document.addEventListener("toggle", async ({ target }) => {
  const address = target.open && target.dataset.fill;
  if (!address) return;
  delete target.dataset.fill;
  try {
    const found = await page(address);
    localize(found);
    target.append(...found.body.children);
  } catch {
    target.dataset.fill = address;
    target.open = false;
  }
}, true);
