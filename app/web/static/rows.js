// The list of conversations, which follows live updates.

import { all, byId, made, page } from "./dom.js";
import * as keys from "./keys.js";
import { clock, cut, me, people, scrolled, talk, view } from "./talks.js";
import { localize } from "./times.js";

const belongs = (shown) => {
  if (view.label && !shown.labels.includes(view.label)) return false;
  if (view.channel && shown.channel_id !== view.channel) return false;
  if (view.assignee && (shown.assignee_id ?? "none") !== view.assignee) return false;
  const isAwake = shown.status === "open" && !shown.snoozed_until;
  return {
    mine: isAwake && shown.assignee_id === me,
    unassigned: isAwake && !shown.assignee_id,
    all: isAwake,
    waiting: shown.status === "open" && shown.waiting_since !== null,
    snoozed: shown.snoozed_until !== null,
    closed: shown.status === "closed",
  }[view.view];
};
const rowsList = byId("rows");
const channels = JSON.parse(view.channels);
const shownList = new URLSearchParams(location.search);
const isFirstPage = !shownList.has("after");
for (const name of ["after", "before", "pane"]) shownList.delete(name);
const isByLatest = ["mine", "unassigned", "all"].includes(view.view);
// The last messages of conversations without a row, by conversation, for when they get one.
const MOST_TOLD = 500;
const told = new Map();
const gistOf = (message) => (message.direction === "out" ? "↩ " : "") + cut(message.text ?? "…", 140);
// Makes a row like the one that rows.html renders.
const row = (shown, gist, isDraft) => {
  const short = clock(shown.last_message_at ?? shown.created_at, "short");
  const mark = (kind, text) => made("span", { class: kind }, text);
  const name = shown.contact_name ?? "Deleted contact";
  const tick = made("input", { type: "checkbox", name: "conversation_id", value: shown.id, form: "selection",
    "aria-label": `Choose the conversation with ${name}` });
  const marks = [
    channels[shown.channel_id] ? mark("channel", channels[shown.channel_id]) : null,
    shown.assignee_id ? mark("assignee", people[shown.assignee_id] ?? "a former member") : null,
    shown.snoozed_until ? mark("state warn", "snoozed") : null,
    shown.waiting_since && !shown.snoozed_until ? mark("state busy waits", "waits") : null,
    ...shown.labels.slice(0, 3).map((label) => made("bdi", { class: "state" }, label.length > 20 ? `${cut(label, 17)}...` : label)),
    shown.labels.length > 3 ? mark("muted", `+${shown.labels.length - 3}`) : null,
  ].filter(Boolean);
  const item = made("li", { class: shown.unread ? "entry unread" : "entry", id: `row-${shown.id}`, "data-contact": name, "data-channel": shown.channel_id },
    byId("selection") ? made("label", { class: "tick" }, tick) : null,
    made("a", { href: `${view.home}/${shown.id}?${shownList}`, "aria-current": talk().id === shown.id ? "true" : null },
      made("span", { class: "line" }, made("bdi", { class: "name" }, name),
        shown.unread ? made("span", { class: "count", "aria-label": `${shown.unread} unread` }, shown.unread < 100 ? shown.unread : "99+") : null,
        short),
      made("span", { class: "line" }, isDraft ? mark("draft", "Draft") : null, made("span", { class: "gist", dir: "auto" }, gist)),
      made("span", { class: "line marks" }, ...marks.flatMap((each) => [each, " "]))));
  localize(item);
  return item;
};
const nextPage = () => document.querySelector(".list .pager [rel=next]");
const lay = (item) => {
  if (view.view === "waiting" || view.view === "snoozed") {
    if (!nextPage()) rowsList.append(item); // otherwise it belongs on the last page
  } else rowsList.prepend(item);
  byId("no-rows").hidden = true;
  if (isByLatest && rowsList.children.length > MOST_ROWS) shorten();
};
// New rows arrive all day, so the oldest are left to the next page. That begins a millisecond after the time of the
// last row, because times here are truncated.
const MOST_ROWS = 100;
const shorten = () => {
  if (rowsList.lastElementChild.contains(document.activeElement)) return;
  rowsList.lastElementChild.remove();
  const last = rowsList.lastElementChild;
  const at = new Date(Date.parse(last.querySelector("time").dateTime) + 1).toISOString();
  const query = new URLSearchParams(shownList);
  query.set("after", `${at}~${last.id.replace("row-", "")}`);
  const link = nextPage() ?? made("a", { class: "button small", rel: "next" }, "Next page");
  link.href = `${view.home}?${query}`;
  if (!link.isConnected) rowsList.after(made("nav", { class: "pager", "aria-label": "Pages of the list" }, link));
};
const draw = (shown) => {
  const there = byId(`row-${shown.id}`);
  const gist = told.get(shown.id) ?? there?.querySelector(".gist")?.textContent;
  if (gist === undefined) return false;
  const item = row(shown, gist, Boolean(there?.querySelector(".draft")));
  if (!there) {
    lay(item);
    return true;
  }
  if (there.querySelector(".tick input")?.checked) item.querySelector(".tick input").checked = true;
  // The focus and the selection stay, so that keys continue from this row.
  const hasFocus = there.contains(document.activeElement);
  if (there.hasAttribute("aria-selected")) item.setAttribute("aria-selected", "true");
  there.replaceWith(item);
  if (hasFocus) item.querySelector("a").focus();
  return true;
};
// A conversation's event and its message's may arrive in either order.
const MESSAGE_MS = 300;
// Rows that now belong here, but whose message did not arrive: they are fetched one after the other, so that a flood
// sends no more requests than the server can answer.
const wanted = new Map();
let isFetching = false;
export const fetchRows = async () => {
  if (isFetching) return;
  isFetching = true;
  for (const [id, shown] of wanted) {
    wanted.delete(id);
    if (draw(shown)) continue;
    try {
      const item = (await page(`${view.home}/${id}/row${location.search}`)).querySelector("li");
      localize(item);
      if (talk().id === id) item.querySelector("a").setAttribute("aria-current", "true");
      if (!byId(item.id)) lay(item);
    } catch {
      // It is deleted, or the server is unavailable: the stream's end reloads everything.
    }
  }
  isFetching = false;
};
export const update = (shown) => {
  if (view.view === "search") return; // it shows the matches of a search
  const there = byId(`row-${shown.id}`);
  if (belongs(shown)) {
    if (!(there || isFirstPage) || draw(shown)) return;
    wanted.set(shown.id, shown);
    if (!document.hidden) setTimeout(fetchRows, MESSAGE_MS);
  } else if (there) {
    // Do not remove a row while it is open or has the focus.
    if (talk().id === shown.id || there.contains(document.activeElement)) there.classList.add("left");
    else there.remove();
    byId("no-rows").hidden = rowsList.children.length > 0;
  }
};
export const removeLeft = () => {
  for (const each of all("#rows .left")) if (each.id !== `row-${talk().id}` && !each.contains(document.activeElement)) each.remove();
  byId("no-rows").hidden = rowsList.children.length > 0;
};
rowsList.addEventListener("focusout", () => setTimeout(removeLeft));
// Moves the focus to the next row after these conversations were changed.
const DEALT_WITH_MS = 5000; // after that, a row that is still there can be reached again
const dealtWith = new Set();
export const reachNext = (ids) => {
  for (const id of ids) dealtWith.add(id);
  setTimeout(() => ids.forEach((id) => dealtWith.delete(id)), DEALT_WITH_MS);
  const found = [...rowsList.children];
  const isDone = (each) => ids.includes(each.id.replace("row-", ""));
  const isNext = (each) => !dealtWith.has(each.id.replace("row-", "")) && !each.matches(".left");
  const focused = found.findIndex((each) => isDone(each) && each.contains(document.activeElement));
  const at = focused < 0 ? found.findLastIndex(isDone) : focused;
  const next = found.slice(at + 1).find(isNext) ?? found.slice(0, at + 1).findLast(isNext);
  if (next) keys.reach(next);
  if (!next?.contains(document.activeElement)) (scrolled() ?? byId("main")).focus();
};
export const raise = (message) => {
  if (message.status === "scheduled") return;
  const there = byId(`row-${message.conversation_id}`);
  if (!there) {
    told.set(message.conversation_id, gistOf(message));
    if (told.size > MOST_TOLD) told.delete(told.keys().next().value);
    return;
  }
  if (!there.querySelector(".gist")) return;
  told.delete(message.conversation_id);
  there.querySelector(".gist").textContent = gistOf(message);
  there.querySelector("time").replaceWith(clock(message.created_at, "short"));
  localize(there);
  // Not while the pointer or the focus is on the list.
  const isUsed = rowsList.matches(":hover") || rowsList.contains(document.activeElement);
  if (isByLatest && isFirstPage && !isUsed) rowsList.prepend(there);
};
let countsAsked = false;
export const count = () => {
  if (countsAsked) return;
  countsAsked = true;
  setTimeout(async () => {
    countsAsked = false;
    if (document.hidden) return;
    const response = await fetch(`${view.home}/counts`).catch(() => null);
    if (!response?.ok) return;
    const counts = await response.json();
    for (const each of all("[data-count]")) each.textContent = counts[each.dataset.count]?.toLocaleString("en") ?? "";
  }, 1000 + Math.random() * 2000);
};
