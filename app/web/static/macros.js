// The form of a macro: rows are added, removed and moved without a reload. Without the script, its buttons post the
// form.

import { byId } from "./dom.js";

const form = byId("macro");
const rows = byId("rows");
const heard = byId("heard");

const number = () => {
  const all = [...rows.children];
  all.forEach((row, place) => {
    for (const button of row.querySelectorAll(".tools button")) button.value = `${button.className}-${place}`;
  });
  byId("no-rows").hidden = all.length > 0;
  byId("add").hidden = all.length >= Number(rows.dataset.most);
};
const label = (row) => row.querySelector(".what").textContent;
const place = (row) => [...rows.children].indexOf(row) + 1;
const reach = (row) => row?.querySelector("select, textarea, input:not([type=hidden]), .remove").focus();

const press = {
  add() {
    const kind = form.elements.add_kind.value;
    rows.append(document.querySelector(`template[data-kind="${kind}"]`).content.cloneNode(true));
    heard.textContent = `${label(rows.lastElementChild)}, action ${rows.children.length}`;
    number();
    reach(rows.lastElementChild);
  },
  remove(row) {
    const next = row.nextElementSibling ?? row.previousElementSibling;
    heard.textContent = `${label(row)} is removed`;
    row.remove();
    number();
    (next?.querySelector(".remove") ?? form.elements.add_kind).focus();
  },
  up(row, button) {
    row.previousElementSibling?.before(row);
    press.moved(row, button);
  },
  down(row, button) {
    row.nextElementSibling?.after(row);
    press.moved(row, button);
  },
  moved(row, button) {
    number();
    heard.textContent = `${label(row)} is now action ${place(row)}`;
    button.focus();
    if (document.activeElement !== button) row.querySelector(button.className === "up" ? ".down" : ".up").focus();
  },
};
form.addEventListener("click", (event) => {
  const button = event.target.closest("button[name=do]");
  const doing = button?.value.split("-")[0];
  if (!button || doing === "save") return;
  event.preventDefault();
  press[doing](button.closest("li"), button);
});
