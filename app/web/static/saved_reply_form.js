// The form of a saved reply: the preview follows the typed text.

import { byId, made, parsed } from "./dom.js";

const form = byId("saved-reply");
const text = form.elements.text;
const preview = byId("preview");

let waiting = 0;
let asking = new AbortController();
const show = async () => {
  asking.abort();
  if (!text.value.trim()) return preview.replaceChildren(made("p", { class: "muted" }, "What you write appears here."));
  asking = new AbortController();
  const body = new URLSearchParams({ csrf_token: form.elements.csrf_token.value, do: "preview", text: text.value });
  if (form.elements.contact_id) body.set("contact_id", form.elements.contact_id.value);
  try {
    const response = await fetch(location.href, { method: "POST", body, signal: asking.signal });
    const fresh = parsed(await response.text()).getElementById("preview");
    if (fresh) preview.replaceChildren(...fresh.childNodes);
  } catch {
    // The text has changed meanwhile, or the server is unavailable: the next key asks again.
  }
};
text.addEventListener("input", () => {
  clearTimeout(waiting);
  waiting = setTimeout(show, 400);
});
form.elements.contact_id?.addEventListener("change", show);
byId("show-preview").hidden = true;
