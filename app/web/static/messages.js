// Draws messages and notes, as the macros of templates/inbox/parts.html do.

import { byId, made } from "./dom.js";
import { author, clock, fieldsOf, inbox } from "./talks.js";
import { localize } from "./times.js";

const STATUSES = {
  queued: "Queued", sending: "Sending", scheduled: "Scheduled", sent: "Sent", delivered: "Delivered", read: "Read",
  failed: "Not sent", unknown: "Perhaps sent",
};
const SOUNDS = ["audio/mpeg", "audio/mp4", "audio/aac", "audio/ogg", "audio/wav"];
export const PICTURES = ["image/png", "image/jpeg", "image/gif", "image/webp"];
export const size = (bytes) => (bytes < 1000 ? `${bytes} B` : bytes < 1e6 ? `${Math.round(bytes / 1000)} kB` : `${(bytes / 1e6).toFixed(1)} MB`);
const linked = (of) =>
  of.type === "broadcast" ? made("a", { href: `${inbox.dataset.home.replace(/inbox$/, "broadcasts")}/${of.id}` }, author(of)) : author(of);
const attachment = (file) => {
  const name = file.name ?? file.content_type;
  if (file.bytes === null) return made("span", { class: "file muted" }, `${name}, on its way`);
  const link = { href: file.address, target: "_blank", rel: "noopener" };
  if (PICTURES.includes(file.content_type)) {
    return made("a", { class: "picture", ...link }, made("img", { src: file.address, alt: file.name ?? "Picture" }));
  }
  const named = made("a", { class: "file", ...link }, `${name} `, made("span", { class: "muted" }, size(file.bytes)));
  if (!SOUNDS.includes(file.content_type)) return named;
  const sound = made("audio", { controls: "", preload: "none", src: file.address, "aria-label": file.name ?? "Sound" });
  return made("span", { class: "sound" }, sound, " ", named);
};
// Turns web addresses in a text into links, like the template filter `linked`.
const ADDRESS = /(https?:\/\/[!-~]*[a-z0-9/&=#_~$%*+@-])/i;
export const textOf = (text) =>
  made("p", { class: "text" }, ...text.split(ADDRESS).map((part, at) =>
    at % 2 ? made("a", { href: part, target: "_blank", rel: "noopener noreferrer nofollow" }, part) : part));
const formTo = (path, look, ...children) =>
  made("form", { method: "post", class: look, "data-once": "", action: `${inbox.dataset.home}/${path}` },
    ...[...fieldsOf({})].map(([name, value]) => made("input", { type: "hidden", name, value })), ...children);
const again = (message) =>
  formTo(`${message.conversation_id}/messages/${message.id}/resend`, "inline again",
    made("button", { class: "small" }, "Send again"),
    message.status === "unknown" ? made("span", { class: "muted" }, " The contact may then get it twice.") : null);
export const drawn = (message) => {
  const said = [STATUSES[message.status] ?? message.status, message.failure?.detail].filter(Boolean).join(": ");
  const bubble = made("div", { class: "bubble", dir: "auto" },
    message.text ? textOf(message.text) : null, ...message.attachments.map(attachment));
  if (message.buttons?.length) {
    bubble.append(made("p", { class: "offered" }, ...message.buttons.map((each) => made("span", {}, each.label))));
  }
  const isOut = message.direction === "out";
  const item = made("li", { class: `message ${message.direction}`, id: message.id, "data-status": message.status },
    made("p", { class: "by" }, made("bdi", { class: "author" }, linked(message.author)), " ",
      clock(message.provider_time ?? message.created_at)),
    bubble, isOut ? made("p", { class: "status" }, said) : null,
    isOut && byId("composer") && ["failed", "unknown"].includes(message.status) ? again(message) : null);
  localize(item);
  return item;
};
export const drawnNote = (note) => {
  const remove = made("button", { class: "small plain", "aria-label": "Delete this note" }, "Delete");
  const item = made("li", { class: "message note", id: note.id },
    made("div", { class: "by" }, made("bdi", { class: "author" }, author(note.author)), " wrote a note ", clock(note.created_at), " ",
      byId("composer") ? formTo(`${note.conversation_id}/notes/${note.id}/delete`, "inline", remove) : null),
    made("div", { class: "bubble", dir: "auto" }, textOf(note.text)));
  localize(item);
  return item;
};
