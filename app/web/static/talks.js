// Shared by the inbox's scripts: whose inbox it is, the open conversation, requests, and messages to the reader.

import { byId, made } from "./dom.js";
import * as offline from "./offline.js";

export const inbox = byId("inbox");
export const view = inbox.dataset;
export const { me } = view;
export const people = JSON.parse(view.people);
// The open conversation, and its thread.
export const talk = () => byId("talk").dataset;
export const scrolled = () => byId("scrolled");
export const author = (of) =>
  ({ contact: talk().name, member: people[of.id] ?? "Support", automation: "Automation", broadcast: "Broadcast", provider: "In the provider's app" })[of.type] ?? "API";
export const clock = (at, form = "") => made("time", { datetime: at, title: at, "data-local": form }, at);

// Cuts a text, but never within an emoji or an accented letter.
export const cut = (text, most) => {
  if (text.length <= most) return text;
  let end = 0;
  for (const { index, segment } of new Intl.Segmenter().segment(text)) {
    if (index + segment.length > most) break;
    end = index + segment.length;
  }
  return text.slice(0, end);
};

// Returns the address that renders a conversation without the list, which stays.
export const panesOf = (address) => {
  const { pathname, search } = new URL(address, location);
  return `${pathname}${/\/cnv_\w+$/.test(pathname) ? "/panes" : ""}${search}`;
};

// Posts a form, repeatedly until the server responds. Returns the response's `status` and `body`.
export const posted = async (address, data) => {
  for (let pause = 500; ; pause = Math.min(pause * 2, 15_000)) {
    try {
      const response = await fetch(address, { method: "POST", body: data, headers: { Accept: "application/json" } });
      if (response.redirected) return { status: 401, body: { detail: "You are not signed in any more. Sign in in another window, then send it again." } };
      if (response.status < 500) {
        return { status: response.status, body: response.status === 204 ? {} : await response.json().catch(() => ({})) };
      }
    } catch {
      offline.suspect();
    }
    await new Promise((done) => {
      setTimeout(done, pause);
      addEventListener("back", done, { once: true });
    });
  }
};
export const fieldsOf = (fields) => {
  const data = new FormData();
  const token = document.querySelector("[name=csrf_token]").value;
  for (const [name, value] of Object.entries({ csrf_token: token, once: crypto.randomUUID(), ...fields })) data.set(name, value);
  return data;
};

// Tells screen readers.
export const hear = (text) => (byId("heard").textContent = text);
// Shows what was done, above the composer.
export const tell = (said, tone) => {
  const line = byId("told");
  if (!line) return;
  line.textContent = said;
  line.className = `flash ${tone}`;
  line.hidden = false;
  hear(said);
  setTimeout(() => (line.hidden = true), 8000);
};
// Shows why what is in the composer was not sent.
export const refuse = (said) => {
  byId("refused").textContent = said;
  byId("refused").hidden = !said;
};
