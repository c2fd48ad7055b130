// The form of a saved reply: the preview follows the typed text.

import { byId, made } from "./dom.js";

const form = byId("saved-reply");
const text = form.elements.text;
const preview = byId("preview");

const element = (tag, className, ...children) => made(tag, { class: className }, ...children);
const code = (name) => element("code", "", name);
const missing = (names) =>
  element("p", "hint", "Empty for this contact: ", ...names.flatMap((name, place) => (place ? [", ", code(name)] : [code(name)])),
    ". Write ", code(`{{ ${names[0]} | default: "there" }}`), " for something else instead.");
const draw = ({ rendered, missing: names, errors }) => {
  if (errors.text) return preview.replaceChildren(element("p", "fault", errors.text));
  const bubble = element("p", "bubble", rendered);
  bubble.dir = "auto";
  preview.replaceChildren(bubble, ...(names.length ? [missing(names)] : []));
};

let waiting = 0;
let asking = new AbortController();
const show = async () => {
  asking.abort();
  if (!text.value.trim()) return preview.replaceChildren(element("p", "muted", "What you write appears here."));
  asking = new AbortController();
  const body = new URLSearchParams({ csrf_token: form.elements.csrf_token.value, do: "preview", text: text.value });
  if (form.elements.contact_id) body.set("contact_id", form.elements.contact_id.value);
  try {
    const options = { method: "POST", body, headers: { Accept: "application/json" }, signal: asking.signal };
    const response = await fetch(location.href, options);
    if (response.ok) draw(await response.json());
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
