// The messages of the open conversation. They do not move while somebody reads: the thread follows new messages only at
// its end.

import { all, byId, made, page, textButton } from "./dom.js";
import { isForLater } from "./later.js";
import { drawn, drawnNote } from "./messages.js";
import { author, clock, hear, me, panesOf, scrolled, talk } from "./talks.js";
import { localize, midnight } from "./times.js";

export const isAtEnd = () => scrolled().scrollHeight - scrolled().scrollTop - scrolled().clientHeight < 60;
export const toEnd = () => {
  byId("to-newest")?.remove();
  scrolled().scrollTop = scrolled().scrollHeight;
};
const offerNewest = () => {
  if (byId("to-newest")) return;
  const button = textButton("New messages ↓", toEnd);
  button.id = "to-newest";
  button.classList.add("to-newest");
  scrolled().append(button);
};
// Inserts the item at its place in time, or replaces the existing one; returns whether it is new.
const setIn = (item) => {
  const there = byId(item.id);
  const follows = isAtEnd();
  if (there) {
    there.replaceWith(item);
  } else {
    const shown = all("#thread > .message:not([data-pending])");
    const later = shown.find((each) => timeOf(each) > timeOf(item));
    // It lies among older messages that are not loaded, and will come with them.
    if (byId("older") && later && later === shown[0]) return false;
    byId("thread").querySelector(".nothing")?.remove();
    item.classList.add("new");
    byId("thread").insertBefore(item, later ?? byId("thread").querySelector("[data-pending]"));
    if (!follows) offerNewest();
  }
  markDays();
  if (follows) toEnd();
  return !there;
};
export const put = (message) => {
  if (isForLater(message)) return;
  if (setIn(drawn(message)) && message.direction === "in") hear(`${talk().name}: ${message.text ?? "a file"}`);
};
export const putNote = (note) => {
  if (setIn(drawnNote(note)) && note.author.id !== me) hear(`${author(note.author)} wrote a note: ${note.text}`);
};
// Dates are above their first message, in the reader's time zone. A correct one stays, so that it is not read aloud
// again.
const timeOf = (item) => Date.parse(item.querySelector("time")?.dateTime ?? new Date().toISOString());
const dayOf = (item) => midnight(new Date(timeOf(item))).getTime();
export const markDays = () => {
  const right = new Set();
  let day = 0;
  for (const item of all("#thread > .message")) {
    if (dayOf(item) === day) continue;
    day = dayOf(item);
    let above = item.previousElementSibling;
    if (!above?.matches(".day") || dayOf(above) !== day) {
      above = made("li", { class: "day" }, clock(new Date(timeOf(item)).toISOString(), "day"));
      localize(above);
      item.before(above);
    }
    right.add(above);
  }
  for (const each of all("#thread > .day")) if (!right.has(each)) each.remove();
};
export const older = async () => {
  const link = byId("older");
  if (!link || link.ariaBusy) return;
  link.ariaBusy = "true";
  try {
    const earlier = await page(panesOf(link.href));
    const height = scrolled().scrollHeight;
    const items = [...earlier.getElementById("thread").children].filter((each) => !byId(each.id));
    localize(earlier);
    byId("thread").prepend(...items);
    markDays();
    const next = earlier.getElementById("older");
    if (next) link.href = next.href;
    else link.parentElement.remove();
    scrolled().scrollTop += scrolled().scrollHeight - height;
  } catch {
    // The link stays: a click tries again.
  }
  link.ariaBusy = null;
};
