// form [data-keep]: keeps what is typed in this browser until the form is sent, even if the reader leaves the page. The
// element itself tells the reader that the values were restored.

import { all } from "./dom.js";

for (const line of all("form [data-keep]")) {
  const form = line.closest("form");
  const place = `form ${line.dataset.keep} ${location.pathname}`;
  const isTicked = (field) => ["checkbox", "radio"].includes(field.type);
  const fields = () => [...form.elements].filter((each) => each.name && !each.matches("button, fieldset, [type=hidden], [type=file]"));
  const values = () => JSON.stringify(fields().map((each) => [each.name, isTicked(each) ? each.checked : each.value]));
  const shown = values();
  const keep = () => (values() === shown && !line.dataset.typed ? localStorage.removeItem(place) : localStorage.setItem(place, values()));
  const restore = (kept) => {
    for (const field of fields()) {
      const [, value] = kept.find(([name]) => name === field.name) ?? [];
      if (value === undefined || (field.matches("select") && ![...field.options].some((each) => each.value === value))) continue;
      const before = isTicked(field) ? field.checked : field.value;
      if (isTicked(field)) field.checked = value;
      else field.value = value;
      const around = field.closest("details:not([open])");
      if (around && before !== value) around.open = true;
    }
    line.hidden = false;
  };

  const kept = localStorage.getItem(place);
  if (line.dataset.typed) keep(); // the values that came with the page are newer
  else if (kept && kept !== shown) restore(JSON.parse(kept));
  form.addEventListener("input", keep);
  form.addEventListener("change", keep);
  form.addEventListener("submit", () => navigator.onLine && localStorage.removeItem(place));
  line.querySelector("button").addEventListener("click", () => {
    localStorage.removeItem(place);
    form.reset();
    line.hidden = true;
    dispatchEvent(new CustomEvent("refreshed", { detail: form }));
  });
}
