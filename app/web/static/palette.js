// Ctrl-K: a list of all actions of the page. They are read from the page itself: the menu, the views, everything with a
// key, and the tools of a conversation. The last entry searches.
"use strict";

{
  const palette = document.getElementById("palette");
  const paletteText = document.getElementById("palette-text");
  const paletteList = document.getElementById("palette-list");
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

  let shown = [];
  let at = 0;
  const mark = (to) => {
    at = Math.max(0, Math.min(to, shown.length - 1));
    [...paletteList.children].forEach((each, index) => each.setAttribute("aria-selected", String(index === at)));
    const item = paletteList.children[at];
    if (item) paletteText.setAttribute("aria-activedescendant", item.id);
    else paletteText.removeAttribute("aria-activedescendant");
    item?.scrollIntoView({ block: "nearest" });
  };
  const drawEntries = (known) => {
    const words = paletteText.value.toLowerCase().split(/\s+/).filter(Boolean);
    const fits = ({ group, label }) => words.every((word) => `${group} ${label}`.toLowerCase().includes(word));
    shown = [...known.filter(fits), search(paletteText.value.trim())].filter(Boolean);
    paletteList.replaceChildren(
      ...shown.map((entry, index) => {
        const item = document.createElement("li");
        item.id = `palette-${index}`;
        item.setAttribute("role", "option");
        for (const [name, text] of [["group", entry.group], ["label", entry.label], ["key", entry.key]]) {
          const part = document.createElement(name === "key" ? "kbd" : "span");
          part.className = name;
          part.textContent = text ?? "";
          if (text) item.append(part, " ");
        }
        return item;
      }),
    );
    mark(0);
  };
  let known = [];
  const openPalette = () => {
    if (document.querySelector("dialog[open]")) return;
    known = entries();
    paletteText.value = "";
    palette.showModal();
    drawEntries(known);
    paletteText.focus();
  };
  const choose = (entry) => {
    palette.close();
    // After the dialog has returned the focus.
    if (entry) setTimeout(entry.run);
  };

  paletteText.addEventListener("input", () => drawEntries(known));
  paletteText.addEventListener("keydown", (event) => {
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: 8, PageUp: -8 };
    if (event.key in steps) mark(at + steps[event.key]);
    else if (event.key === "Enter" && !event.isComposing) choose(shown[at]);
    else return;
    event.preventDefault();
  });
  paletteList.addEventListener("click", (event) => {
    const item = event.target.closest("li");
    if (item) choose(shown[[...paletteList.children].indexOf(item)]);
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
}
