// Several conversations at once: ticks by `x`, in ranges with shift, and their change without a reload.
"use strict";

const selection = document.getElementById("selection");
if (selection) {
  const list = document.getElementById("rows");
  const boxes = () => all(".tick input", list);
  // A row that is drawn anew keeps its tick.
  const tickedIds = new Set();
  let lastTicked = null;

  const showTicked = () => {
    const number = boxes().filter((box) => box.checked).length;
    document.getElementById("ticked").textContent = `${number} chosen`;
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
  const change = (box, isRange) => {
    if (isRange) tickRange(box, box.checked);
    else tick(box, box.checked);
    lastTicked = box.value;
    document.getElementById("selection-said").textContent = "";
    showTicked();
  };

  const submit = async (button) => {
    const data = new FormData(selection, button);
    selection.setAttribute("aria-busy", "true");
    for (const menu of all("details[open]", selection)) menu.open = false;
    let said;
    try {
      const response = await fetch(selection.action, { method: "POST", body: data, headers: { Accept: "application/json" } });
      const answer = await response.json();
      if (answer.address) {
        location.href = answer.address;
        return;
      }
      said = answer.said ?? "This could not be done.";
      // The next click is another change.
      selection.elements.once.value = crypto.randomUUID();
      if (response.ok) untickAll();
    } catch {
      // The same key makes the next click the same change.
      said = "The server cannot be reached. Try again.";
    }
    selection.removeAttribute("aria-busy");
    document.getElementById("selection-said").textContent = said;
    hear(said);
  };

  // It is sent here, not by the page.
  selection.removeAttribute("data-once");
  list.addEventListener("click", (event) => {
    if (event.target.matches(".tick input")) change(event.target, event.shiftKey);
  });
  selection.addEventListener("submit", (event) => {
    event.preventDefault();
    if (selection.ariaBusy !== "true") submit(event.submitter);
  });
  new MutationObserver(() => {
    for (const box of boxes()) box.checked = tickedIds.has(box.value);
    showTicked();
  }).observe(list, { childList: true });
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("textarea, select, input:not([type=checkbox])")) return;
    if (document.querySelector("dialog[open]") || event.key.toLowerCase() !== "x") return;
    const row = list.querySelector("li:focus-within, li[aria-selected=true]") ?? list.querySelector("li:has(a[aria-current])");
    const box = row?.querySelector(".tick input");
    if (!box) return;
    event.preventDefault();
    box.checked = event.shiftKey || !box.checked;
    change(box, event.shiftKey);
  });
  for (const box of boxes()) if (box.checked) tickedIds.add(box.value);
  showTicked();
}
