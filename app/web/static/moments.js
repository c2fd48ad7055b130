// Fields for times, in the reader's zone, which the form sends beside them. Without this they are in UTC.
"use strict";

const readersZone = Intl.DateTimeFormat().resolvedOptions().timeZone;
if (readersZone) {
  const here = (at) => new Date(at - at.getTimezoneOffset() * 60_000).toISOString().slice(0, -1);
  for (const each of document.querySelectorAll("input[data-at]")) each.value = here(new Date(each.dataset.at));
  for (const each of document.querySelectorAll("[data-zone-name]")) each.textContent = readersZone;
  for (const each of document.querySelectorAll("input[data-zone]")) {
    each.value = readersZone;
    // Without times, no zone stands in the address.
    const times = [...each.form.querySelectorAll("[type=datetime-local]")];
    each.form.addEventListener("submit", () => (each.disabled = times.every((time) => !time.value)));
  }
}
