// What saves a reload or a reach for the mouse. Every page works without it; behaviours are bound by attributes.
"use strict";

const all = (selector, within = document) => [...within.querySelectorAll(selector)];

// [data-local]: times in the reader's zone; UTC stays in the title.
// ="short": as much of it as tells today's from others.
const zoned = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
const ofDay = new Intl.DateTimeFormat(undefined, { timeStyle: "short" });
const ofYear = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric" });
const inShort = (at) => {
  const isToday = at.toDateString() === new Date().toDateString();
  const isThisYear = at.getFullYear() === new Date().getFullYear();
  return isToday ? ofDay.format(at) : isThisYear ? ofYear.format(at) : at.toLocaleDateString();
};
const localize = (within) => {
  for (const each of all("time[data-local]", within)) {
    const at = new Date(each.dateTime);
    each.textContent = each.dataset.local === "short" ? inShort(at) : zoned.format(at);
  }
};

// form[data-once]: one click counts. The server knows a second one by its key; this only shows it.
addEventListener("submit", (event) => {
  const form = event.target;
  if (!form.matches("form[data-once]") || event.defaultPrevented) return;
  form.setAttribute("aria-busy", "true");
  setTimeout(() => all("button", form).forEach((each) => (each.disabled = true)));
});
// Back and forward: the browser shows the form as it was left.
addEventListener("pageshow", () => {
  for (const form of all("form[aria-busy]")) {
    form.removeAttribute("aria-busy");
    all("button", form).forEach((each) => (each.disabled = false));
  }
});

// [data-submit]: a filter that applies when it changes.
addEventListener("change", (event) => event.target.closest("[data-submit]")?.form.requestSubmit());

// Empty filters stay out of the address.
addEventListener("submit", (event) => {
  if (event.target.method === "get") for (const each of all("input, select", event.target)) each.disabled = !each.value;
});

addEventListener("click", async (event) => {
  const copier = event.target.closest("[data-copy]");
  if (copier) {
    const said = copier.textContent;
    await navigator.clipboard.writeText(copier.dataset.copy);
    copier.textContent = "Copied";
    setTimeout(() => (copier.textContent = said), 1500);
  }
  if (event.target.closest("[data-print]")) print();
  const opener = event.target.closest("[data-dialog]");
  if (opener) document.getElementById(opener.dataset.dialog).showModal();
  // Menus close when the reader clicks elsewhere.
  for (const menu of all("details.menu[open]")) if (!menu.contains(event.target)) menu.open = false;
});

// Keys. `g` waits a second for the letter of a place.
const rows = () => all("table[data-rows] tbody tr, ol[data-rows] > li");
const step = (by) => {
  const found = rows();
  const at = found.findIndex((each) => each.getAttribute("aria-selected") === "true");
  const next = found[Math.min(Math.max(at + by, 0), found.length - 1)];
  if (!next) return;
  found[at]?.removeAttribute("aria-selected");
  next.setAttribute("aria-selected", "true");
  next.querySelector("a, button")?.focus();
  next.scrollIntoView({ block: "nearest" });
};
let going = 0;
const press = (found) => {
  found.click();
  if (found.matches("summary")) found.parentElement.querySelector("div :is(input:not([type=hidden]), select, button)")?.focus();
};
const follow = (selector) => {
  const found = document.querySelector(selector);
  if (found) press(found);
  return Boolean(found);
};
addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input, textarea, select")) return;
  if (document.querySelector("dialog[open]")) return;
  const key = event.key;
  const isGoing = Date.now() - going < 1000;
  going = 0;
  let done = true;
  if (isGoing && /^[a-z]$/.test(key)) done = follow(`[data-go="${key}"]`);
  else if (key === "g") going = Date.now();
  else if (key === "/") all("[data-focus='/']").at(-1)?.focus(); // the page's own, if it has one
  else if (key === "?") document.getElementById("keys")?.showModal();
  else if (key === "j") step(1);
  else if (key === "k") step(-1);
  else if (/^[a-z]$/.test(key)) done = follow(`[data-key="${key}"]`);
  else done = false;
  if (done) event.preventDefault();
});

localize(document);
