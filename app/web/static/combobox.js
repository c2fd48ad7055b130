// A list of options below a text field. The field keeps the focus, and its keys move through the options.

const STEPS = { ArrowDown: 1, ArrowUp: -1, PageDown: 8, PageUp: -8 };

// Returns a function: whether a label has all of the typed words.
export const finder = (typed) => {
  const words = typed.toLowerCase().split(/\s+/).filter(Boolean);
  return (label) => words.every((word) => label.toLowerCase().includes(word));
};

// `draw` makes the item of an option; `pick` gets the option that is clicked. An arrow key calls `open` while the list
// is hidden. `wraps`: the first option follows the last.
export const combobox = (field, list, { draw, pick, open, wraps = false }) => {
  let shown = [];
  let at = 0;
  const mark = (to) => {
    const last = shown.length - 1;
    at = wraps && to > last ? 0 : wraps && to < 0 ? last : Math.max(0, Math.min(to, last));
    const items = [...list.children];
    items.forEach((each, index) => each.setAttribute("aria-selected", String(index === at)));
    if (items[at]) field.setAttribute("aria-activedescendant", items[at].id);
    else field.removeAttribute("aria-activedescendant");
    items[at]?.scrollIntoView({ block: "nearest" });
  };
  list.addEventListener("mousedown", (event) => event.preventDefault());
  list.addEventListener("click", (event) => {
    const item = event.target.closest("li");
    if (item) pick(shown[[...list.children].indexOf(item)]);
  });
  return {
    show: (options, marked = 0) => {
      shown = options;
      list.replaceChildren(...options.map((option, index) => Object.assign(draw(option), { id: `${list.id}-${index}`, role: "option" })));
      list.hidden = false;
      mark(marked);
    },
    marked: () => shown[at],
    // Moves the mark, if the key does that; returns whether it does.
    move: ({ key }) => {
      if (!(key in STEPS)) return false;
      if (list.hidden) open();
      else mark(at + STEPS[key]);
      return true;
    },
  };
};
