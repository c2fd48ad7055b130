// select[data-find]: a select with many options, which are found by typing a part of their labels. The select stays
// behind the input and keeps the value; without the script, it is shown itself.
"use strict";

const offerChoices = (within) => {
  for (const select of all("select[data-find]", within)) {
    if (!select.hidden) makeChooser(select);
    const input = select.previousElementSibling.querySelector("input");
    if (input.getAttribute("aria-expanded") === "false") input.value = select.selectedOptions[0]?.label ?? "";
    for (const name of ["aria-describedby", "aria-invalid"]) {
      if (select.hasAttribute(name)) input.setAttribute(name, select.getAttribute(name));
      else input.removeAttribute(name);
    }
  }
};

const made = (tag, attributes, text = "") => {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.textContent = text;
  return element;
};

const makeChooser = (select) => {
  const label = select.labels[0];
  const chooser = made("div", { class: "chooser" });
  const typing = { type: "text", id: `${select.id}-find`, autocomplete: "off", dir: "auto", maxlength: 200 };
  const roles = { role: "combobox", "aria-autocomplete": "list", "aria-expanded": "false" };
  const input = made("input", { ...typing, ...roles, "aria-controls": `${select.id}-list` });
  const list = made("ul", { id: `${select.id}-list`, role: "listbox", "aria-label": "Options", hidden: "" });
  chooser.append(input, list);
  label.htmlFor = input.id;
  select.hidden = true;
  select.before(chooser);

  let shown = [];
  let at = -1;
  const mark = (to) => {
    at = Math.max(0, Math.min(to, shown.length - 1));
    const items = [...list.children];
    items.forEach((each, index) => each.setAttribute("aria-selected", String(index === at && shown.length > 0)));
    if (shown.length) input.setAttribute("aria-activedescendant", items[at].id);
    else input.removeAttribute("aria-activedescendant");
    if (shown.length) items[at].scrollIntoView({ block: "nearest" });
  };
  const draw = (text) => {
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    shown = [...select.options].filter((each) => words.every((word) => each.label.toLowerCase().includes(word)));
    const items = shown.map((each, index) => made("li", { id: `${list.id}-${index}`, role: "option", dir: "auto" }, each.label));
    const none = made("li", { role: "option", "aria-disabled": "true" }, "Nothing is called like that.");
    list.replaceChildren(...(items.length ? items : [none]));
    list.hidden = false;
    input.setAttribute("aria-expanded", "true");
    mark(words.length ? 0 : shown.indexOf(select.selectedOptions[0]));
  };
  const close = () => {
    list.hidden = true;
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
    input.value = select.selectedOptions[0]?.label ?? "";
  };
  const choose = (option) => {
    const isNew = option && option.value !== select.value;
    if (option) option.selected = true;
    close();
    if (isNew) for (const kind of ["input", "change"]) select.dispatchEvent(new Event(kind, { bubbles: true }));
  };

  input.addEventListener("focus", () => input.select());
  input.addEventListener("click", () => list.hidden && draw(""));
  input.addEventListener("input", (event) => {
    event.stopPropagation(); // typed text is not a value yet
    draw(input.value);
  });
  input.addEventListener("change", (event) => event.stopPropagation());
  input.addEventListener("blur", () => {
    const called = [...select.options].filter((each) => each.label.toLowerCase() === input.value.trim().toLowerCase());
    if (!list.hidden) choose(called.length === 1 ? called[0] : undefined);
  });
  input.addEventListener("keydown", (event) => {
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: 8, PageUp: -8 };
    if (event.key in steps && list.hidden) draw("");
    else if (event.key in steps) mark(at + steps[event.key]);
    else if (event.key === "Enter" && !list.hidden && !event.isComposing) choose(shown[at]);
    else if (event.key === "Escape" && !list.hidden) close();
    else return;
    event.preventDefault();
  });
  list.addEventListener("mousedown", (event) => event.preventDefault());
  list.addEventListener("click", (event) => choose(shown[[...list.children].indexOf(event.target.closest("li"))]));
};

offerChoices(document);
