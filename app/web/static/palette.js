// Ctrl-K: a list of all actions of the page. They are read from the page itself: the menu, the views, everything with a
// key, and the tools of a conversation. The last entry searches.

import { combobox, finder } from "./combobox.js";
import { all, byId, made } from "./dom.js";
import * as keys from "./keys.js";

const palette = byId("palette");
const paletteText = byId("palette-text");
const paletteList = byId("palette-list");
const nameOf = (element) => (element.getAttribute?.("aria-label") ?? element.textContent).replace(/[‹›↓]/g, "").replace(/\s+/g, " ").trim();
const isThere = (element) => element.checkVisibility() || element.closest("details:not([open])")?.checkVisibility();

// Each entry: its label, its group, its key, and its action.
const entries = () => {
  const found = [];
  const add = (group, element, label, key = "") => {
    if (label && isThere(element) && !found.some((each) => each.element === element)) {
      found.push({ group, element, label, key, run: () => keys.press(element) });
    }
  };
  for (const each of all(".tools details")) {
    const menu = nameOf(each.querySelector("summary"));
    add("Here", each.querySelector("summary"), `${menu} …`, each.querySelector("summary").dataset.key);
    for (const button of all("form.inline button", each)) add("Here", button, `${menu}: ${nameOf(button)}`);
  }
  for (const each of all("[data-key]")) {
    add("Here", each, nameOf(each.labels?.[0] ?? each), each.dataset.key);
  }
  for (const each of all(".views a")) add("View", each, nameOf(each.querySelector("bdi") ?? each.firstChild));
  for (const each of all("nav.side a[data-go]")) {
    const group = each.closest("ul").previousElementSibling?.textContent ?? "Page";
    found.push({ group, element: each, label: nameOf(each), key: `g ${each.dataset.go}`, run: () => keys.press(each) });
  }
  for (const each of all("[data-dialog='keys']")) {
    found.push({ group: "Help", element: each, label: nameOf(each), key: "?", run: () => keys.press(each) });
  }
  return found;
};
const search = (text) => {
  const box = all("[data-focus='/']").at(-1);
  if (!box) return null;
  const run = () => {
    box.value = text;
    if (text) box.form.requestSubmit();
    else box.focus();
  };
  return { group: "Search", label: text ? `Search “${text}”` : nameOf(box), key: "/", run };
};

const draw = (entry) => {
  const part = (name, tag = "span") => (entry[name] ? [made(tag, { class: name }, entry[name]), " "] : []);
  return made("li", {}, ...part("group"), ...part("label"), ...part("key", "kbd"));
};
const choose = (entry) => {
  palette.close();
  // After the dialog has returned the focus.
  if (entry) setTimeout(entry.run);
};
const options = combobox(paletteText, paletteList, { draw, pick: choose });
let known = [];
const showEntries = () => {
  const isLike = finder(paletteText.value);
  const found = known.filter(({ group, label }) => isLike(`${group} ${label}`));
  options.show([...found, search(paletteText.value.trim())].filter(Boolean));
};
const openPalette = () => {
  if (document.querySelector("dialog[open]")) return;
  known = entries();
  paletteText.value = "";
  palette.showModal();
  showEntries();
  paletteText.focus();
};

paletteText.addEventListener("input", showEntries);
paletteText.addEventListener("keydown", (event) => {
  if (!options.move(event)) {
    if (event.key !== "Enter" || event.isComposing) return;
    choose(options.marked());
  }
  event.preventDefault();
});
palette.addEventListener("click", (event) => {
  if (event.target === palette) palette.close();
});
keys.on(["Ctrl+k"], () => {
  if (palette.open) palette.close();
  else openPalette();
});
addEventListener("click", (event) => {
  if (event.target.closest("[data-palette]")) openPalette();
});
