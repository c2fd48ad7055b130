// select[data-find]: a select with many options, which are found by typing a part of their labels. The select stays
// behind the input and keeps the value; without the script, it is shown itself.

import { combobox, finder } from "./combobox.js";
import { all, made } from "./dom.js";

export const offerChoices = (within) => {
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
  const draw = (option) => made("li", { dir: "auto" }, option.label);
  const options = combobox(input, list, { draw, pick: choose, open: () => open("") });
  const open = (typed) => {
    const isLike = finder(typed);
    const found = [...select.options].filter((each) => isLike(each.label));
    options.show(found, typed.trim() ? 0 : found.indexOf(select.selectedOptions[0]));
    if (!found.length) list.append(made("li", { role: "option", "aria-disabled": "true" }, "Nothing is called like that."));
    input.setAttribute("aria-expanded", "true");
  };

  input.addEventListener("focus", () => input.select());
  input.addEventListener("click", () => list.hidden && open(""));
  input.addEventListener("input", (event) => {
    event.stopPropagation(); // typed text is not a value yet
    open(input.value);
  });
  input.addEventListener("change", (event) => event.stopPropagation());
  input.addEventListener("blur", () => {
    const called = [...select.options].filter((each) => each.label.toLowerCase() === input.value.trim().toLowerCase());
    if (!list.hidden) choose(called.length === 1 ? called[0] : undefined);
  });
  input.addEventListener("keydown", (event) => {
    if (!options.move(event)) {
      if (list.hidden) return;
      if (event.key === "Enter" && !event.isComposing) choose(options.marked());
      else if (event.key === "Escape") close();
      else return;
    }
    event.preventDefault();
  });
};

offerChoices(document);
