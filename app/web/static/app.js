// Conveniences that save a reload or the mouse. Every page works without them; behaviours are bound by attributes.

import { all, byId } from "./dom.js";

// form[data-once]: disables the buttons after a click. The server ignores a second click anyway, by the form's key.
addEventListener("submit", (event) => {
  const form = event.target;
  if (!form.matches("form[data-once]") || event.defaultPrevented) return;
  form.setAttribute("aria-busy", "true");
  setTimeout(() => all("button", form).forEach((each) => (each.disabled = true)));
});
// After Back or Forward, the browser shows the form as it was left.
addEventListener("pageshow", () => {
  for (const form of all("form[aria-busy]")) {
    form.removeAttribute("aria-busy");
    all("button", form).forEach((each) => (each.disabled = false));
  }
});

// [data-submit]: a filter that applies when it changes.
addEventListener("change", (event) => event.target.closest("[data-submit]")?.form.requestSubmit());

// input[data-most-bytes]: refuses files that are too large when they are chosen, before they are sent.
addEventListener("change", ({ target }) => {
  const most = target.matches("input[type=file]") && Number(target.dataset.mostBytes);
  if (!most) return;
  const bytes = [...target.files].reduce((sum, file) => sum + file.size, 0);
  target.setCustomValidity(bytes > most ? `This is too large: at most ${most / 2 ** 20} MiB can be sent.` : "");
  target.reportValidity();
});

// Leaves empty filters out of the address.
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
  if (opener) byId(opener.dataset.dialog).showModal();
});
