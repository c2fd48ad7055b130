// Several conversations at once: ticks by `x`, ranges with shift, and changes without a reload.

import { all, byId } from "./dom.js";
import * as keys from "./keys.js";
import { goTo, lookElsewhere } from "./panes.js";
import { reachNext } from "./rows.js";
import { hear, talk } from "./talks.js";

const selection = byId("selection");
const list = byId("rows");
const boxes = () => all(".tick input", list);
// A row that is rendered again keeps its tick.
const tickedIds = new Set();
let lastTicked = null;

const showTicked = () => {
  const number = boxes().filter((box) => box.checked).length;
  byId("ticked").textContent = `${number} chosen`;
};
const tick = (box, isTicked) => {
  box.checked = isTicked;
  if (isTicked) tickedIds.add(box.value);
  else tickedIds.delete(box.value);
};
const tickRange = (box, isTicked) => {
  const found = boxes();
  const from = found.findIndex((each) => each.value === lastTicked);
  const to = found.indexOf(box);
  const range = from < 0 ? [box] : found.slice(Math.min(from, to), Math.max(from, to) + 1);
  for (const each of range) tick(each, isTicked);
};
const untickAll = () => {
  for (const box of boxes()) tick(box, false);
  if (selection.elements.all) selection.elements.all.checked = false;
  showTicked();
};
const change = (box, isRange, isTicked = box.checked) => {
  if (isRange) tickRange(box, isTicked);
  else tick(box, isTicked);
  lastTicked = box.value;
  byId("selection-said").textContent = "";
  showTicked();
};

const said = (text) => (byId("selection-said").textContent = text);
// Submits changes one at a time. Unticks at once, so that the next key applies to other conversations; ticks again
// after a refusal.
let running = Promise.resolve();
const submit = (button) => {
  const data = new FormData(selection, button);
  const ids = data.getAll("conversation_id");
  const menu = button.closest("details");
  selection.elements.once.value = crypto.randomUUID();
  borrowed = null;
  untickAll();
  said("One moment …");
  if (["close", "open", "snooze"].includes(button.value)) {
    if (menu) menu.open = false;
    reachNext(ids);
  } else if (menu) keys.close(menu);
  running = running.then(() => send(data, ids, menu));
};
const send = async (data, ids, menu) => {
  selection.setAttribute("aria-busy", "true");
  try {
    const response = await fetch(selection.action, { method: "POST", body: data, headers: { Accept: "application/json" } });
    const answer = await response.json();
    if (answer.address) {
      location.href = answer.address;
      return;
    }
    said(answer.said ?? "This could not be done.");
    if (!response.ok) giveBack(data, ids, menu);
  } catch {
    said("The server cannot be reached. Try again.");
    // With the same key, the next click is the same change.
    selection.elements.once.value = data.get("once");
    giveBack(data, ids, menu);
  }
  selection.removeAttribute("aria-busy");
  hear(byId("selection-said").textContent);
};
const giveBack = (data, ids, menu) => {
  if (data.get("all")) selection.elements.all.checked = true;
  for (const box of boxes()) if (ids.includes(box.value)) tick(box, true);
  showTicked();
  if (!menu) return;
  menu.open = true;
  if (!keys.isField(document.activeElement)) keys.enter(menu);
};

// So that app.js does not disable the buttons: this script sends the form.
selection.removeAttribute("data-once");
list.addEventListener("click", (event) => {
  if (event.target.matches(".tick input")) change(event.target, event.shiftKey);
});
selection.addEventListener("submit", (event) => {
  event.preventDefault();
  submit(event.submitter);
});
// In a menu's field, Enter clicks the menu's first button, not the form's.
selection.addEventListener("keydown", (event) => {
  const menu = event.key === "Enter" && !event.isComposing && event.target.matches("input, select") && event.target.closest("details");
  if (!menu) return;
  event.preventDefault();
  menu.querySelector("button").click();
});
new MutationObserver(() => {
  for (const box of boxes()) box.checked = tickedIds.has(box.value);
  showTicked();
}).observe(list, { childList: true });

// Keys apply to the ticked conversations, otherwise to the focused row, otherwise to the open conversation. A row
// that is not open is ticked while a menu is open for it.
const focusedRow = () => list.querySelector("li:focus-within");
const openRow = () => list.querySelector("li:has(a[aria-current])");
const isTicked = () => boxes().some((box) => box.checked) || selection.elements.all?.checked;
let borrowed = null;
selection.addEventListener("toggle", () => {
  if (!borrowed || selection.querySelector("details[open]")) return;
  tick(borrowed, false);
  borrowed = null;
  showTicked();
}, true);
const changeSeveral = (key) => {
  const row = focusedRow();
  const part = selection.querySelector(`[data-many="${key}"]`);
  if (!isTicked()) {
    if (!row || row === openRow()) return false;
    if (!part) return true;
    const box = row.querySelector(".tick input");
    change(box, false, true);
    if (part.matches("summary")) borrowed = box;
  }
  if (part) keys.press(part);
  return true;
};
for (const key of ["e", "h", "l", "a"]) keys.on([key], () => changeSeveral(key));
// Keys for a single conversation, which is opened first.
const openFirst = (key) => {
  if (key === "m" && isTicked()) return said("A macro is for one conversation: open it, and tick none.");
  const row = focusedRow();
  if (!row || row === openRow()) return false;
  const address = row.querySelector("a").href;
  const pressed = goTo(address).then(
    () => {
      const found = row.id === `row-${talk().id}` && document.querySelector(`#talk [data-key="${key}"]`);
      if (found) keys.press(found);
    },
    (error) => lookElsewhere(error, address),
  );
  keys.hold(pressed);
};
for (const key of ["r", "n", "m"]) keys.on([key], () => openFirst(key));
keys.on(["x", "X"], (event) => {
  const box = (focusedRow() ?? openRow())?.querySelector(".tick input");
  if (!box) return;
  change(box, event.shiftKey, event.shiftKey || !box.checked);
});
for (const box of boxes()) if (box.checked) tickedIds.add(box.value);
showTicked();
