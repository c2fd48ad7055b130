// Keyboard shortcuts. Only this file listens for keys; other scripts register shortcuts with `keys.on`. While a menu, a
// dialog or a field is open, keys outside it do nothing, and Escape closes it and returns the focus.

import { all, byId } from "./dom.js";

const MENUS = "details:is(.menu, .confirm)[open]";
// Disclosures within the page, which block shortcuts only while they have the focus.
const DISCLOSURES = "details:is(.later-menu, .change, .edit)[open]";
const CLOSABLE = `${MENUS}, details.later-menu[open]`;
const FIELDS = "input:not([type=hidden]), textarea, select";
const TYPED = "input:not([type=hidden], [type=checkbox], [type=radio], [type=file]), textarea, select";
export const isField = (element) => element.matches(FIELDS) && !element.matches("[data-rows] [type=checkbox]");
const openBell = () => document.querySelector("#bell .bell[aria-expanded=true]");

// Shortcuts by name: "e", "Escape", "Ctrl+k". The last one registered is called first; it returns `false` to pass the
// key on.
const acts = new Map();
export const on = (names, act) => {
  for (const name of names) acts.set(name, [act, ...(acts.get(name) ?? [])]);
};
const nameOf = ({ key, ctrlKey, metaKey, altKey, shiftKey }) => {
  if (altKey) return "";
  return ctrlKey || metaKey ? `Ctrl+${shiftKey ? "Shift+" : ""}${key.toLowerCase()}` : key;
};
const run = (name, event) => {
  const isGoing = Date.now() - going < 1000;
  going = 0;
  if (isGoing && /^[a-z]$/.test(name)) return follow(`[data-go="${name}"]`);
  if ((acts.get(name) ?? []).some((act) => act(event) !== false)) return true;
  return /^[a-z]$/.test(name) && follow(`[data-key="${name}"]`);
};

// The field that somebody was typing in when it was removed: further keys were meant for it.
let typedInto = null;
const isTypingOn = () => typedInto && !typedInto.isConnected && document.activeElement === document.body;
addEventListener("focusin", ({ target }) => (typedInto = isField(target) ? target : null));
addEventListener("pointerdown", () => (typedInto = null));

const isTaken = (target) =>
  document.querySelector(`dialog[open], ${MENUS}`) || openBell() || isField(target) || isTypingOn() ||
  target.closest(DISCLOSURES);

// While the part of the page that a key requested is loading, further keys wait for it.
const MOST_HELD_MS = 15000;
let held = null;
export const hold = async (promise) => {
  const mine = (held ??= []);
  const tooLong = new Promise((done) => setTimeout(() => done("late"), MOST_HELD_MS));
  const isLate = (await Promise.race([promise, tooLong]).catch(() => "late")) === "late";
  if (held !== mine) return;
  held = null;
  if (!isLate) mine.forEach(play);
};
const play = (name) => {
  const target = document.activeElement;
  if (target.matches(TYPED)) {
    if (name.length !== 1 || target.matches("select")) return;
    target.setRangeText(name, target.selectionStart, target.selectionEnd, "end");
    target.dispatchEvent(new Event("input", { bubbles: true }));
  } else if (!isTaken(target)) run(name);
};

// In the capture phase, so that only the menu closes, and nothing behind it.
addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || event.isComposing || document.querySelector("dialog[open]")) return;
  typedInto = null;
  const bell = openBell();
  if (!bell && event.target.ariaExpanded === "true") return; // an open list of choices closes first
  const menu = event.target.closest(CLOSABLE) ?? all(MENUS).at(-1);
  if (!menu && !bell) return;
  event.preventDefault();
  event.stopPropagation();
  if (menu) return close(menu);
  bell.click();
  bell.focus();
}, true);
addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.isComposing || event.target === document) return;
  const name = nameOf(event);
  if (held && !name.startsWith("Ctrl")) {
    if (!event.repeat) held.push(name);
    event.preventDefault();
    return;
  }
  const isPalette = name === "Ctrl+k"; // works in fields, too
  if (isPalette ? document.querySelector(MENUS) : isTaken(event.target)) return;
  // A key that is held down acts once, except for moving.
  if (event.repeat && !["j", "k"].includes(name)) return;
  if (run(name, event)) event.preventDefault();
});

// Clicks the element that a key stands for. The text field of an opened menu gets the focus; the opener gets it back,
// or the row that it was in, if that was drawn anew meanwhile.
const openers = new WeakMap();
export const enter = (menu) =>
  (menu.querySelector(`:scope > div :is(${TYPED}):not(select)`) ?? menu.querySelector(`:scope > div :is(${TYPED}, button)`))?.focus();
export const press = (found) => {
  const opener = document.activeElement;
  found.click();
  const menu = found.matches("summary") && found.parentElement;
  if (!menu?.open) return;
  openers.set(menu, { opener, row: opener.closest("li[id], tr[id]")?.id });
  enter(menu);
};
export const close = (menu) => {
  menu.open = false;
  const { opener, row } = openers.get(menu) ?? {};
  openers.delete(menu);
  const back = opener?.isConnected ? opener : row && byId(row)?.querySelector("a, button");
  (back && back !== document.body ? back : menu.querySelector("summary")).focus();
};
// For menus opened by their summary. Not on phones, where the on-screen keyboard would cover the menu.
document.addEventListener("toggle", ({ target }) => {
  if (!target.open) openers.delete(target);
  if (!target.matches(MENUS) || matchMedia("(pointer: coarse)").matches) return;
  if (document.activeElement === target.querySelector("summary")) target.querySelector(`:scope > div :is(${TYPED}):not(select)`)?.focus();
}, true);
// Closes menus when the reader clicks or focuses something else.
for (const kind of ["click", "focusin"]) {
  addEventListener(kind, ({ target }) => {
    for (const menu of all("details.menu[open]")) if (!menu.contains(target)) menu.open = false;
  });
}

let going = 0; // when `g` was pressed: for a second, it waits for the letter of a place
const follow = (selector) => {
  const found = document.querySelector(`.panel ${selector}`) ?? document.querySelector(selector);
  if (found) press(found);
  return Boolean(found);
};

// Rows of lists.
export const rows = () => all("table[data-rows] tbody tr, ol[data-rows] > li").filter((each) => !each.closest(".panel"));
export const reach = (row) => {
  for (const each of rows()) each.removeAttribute("aria-selected");
  row.setAttribute("aria-selected", "true");
  row.querySelector("a, button")?.focus();
  row.scrollIntoView({ block: "nearest" });
  dispatchEvent(new CustomEvent("reached", { detail: row }));
};
const step = (by) => {
  const found = rows();
  const at = [":focus-within", "[aria-selected=true]", ":has(a[aria-current])"]
    .map((place) => found.findIndex((each) => each.matches(place)))
    .find((index) => index >= 0) ?? -1;
  const next = found[Math.min(Math.max(at + by, 0), found.length - 1)];
  if (next) reach(next);
};

on(["g"], () => void (going = Date.now()));
on(["/"], () => all("[data-focus='/']").at(-1)?.focus()); // the page's own, if it has one
on(["?"], () => byId("keys")?.showModal());
on(["j"], () => step(1));
on(["k"], () => step(-1));
