// Conveniences that save a reload or the mouse. Every page works without them; behaviours are bound by attributes.
"use strict";

const all = (selector, within = document) => [...within.querySelectorAll(selector)];

// [data-local]: how long ago; the exact time, in the reader's zone and in UTC, is in the title.
// ="short": as much of it as tells today's from others. ="long": with the time of day. ="exact": the time alone.
// ="day": only the day.
const exactly = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
const withZone = new Intl.DateTimeFormat(undefined, { dateStyle: "full", timeStyle: "long" });
const ofDay = new Intl.DateTimeFormat(undefined, { timeStyle: "short" });
const ofDaySeconds = new Intl.DateTimeFormat(undefined, { timeStyle: "medium" });
const ofYear = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric" });
const ofYears = new Intl.DateTimeFormat(undefined, { dateStyle: "medium" });
const since = new Intl.RelativeTimeFormat(document.documentElement.lang, { numeric: "auto", style: "short" });
const midnight = (at) => new Date(at.getFullYear(), at.getMonth(), at.getDate());
const daysTo = (at) => Math.round((midnight(at) - midnight(new Date())) / 864e5);
const date = (at) => (at.getFullYear() === new Date().getFullYear() ? ofYear : ofYears).format(at);
const inShort = (at) => (daysTo(at) === 0 ? ofDay.format(at) : date(at));
const relative = (at) => {
  const seconds = (at - new Date()) / 1000;
  const past = Math.abs(seconds);
  if (past < 45) return seconds > 5 ? since.format(Math.round(seconds), "second") : "now";
  if (past < 3570) return since.format(Math.round(seconds / 60), "minute");
  if (past < 86400) return since.format(Math.round(seconds / 3600), "hour");
  const days = daysTo(at);
  return Math.abs(days) < 7 ? since.format(days, "day") : date(at);
};
const inFull = (at) => `${relative(at)}, ${daysTo(at) === 0 ? ofDaySeconds.format(at) : exactly.format(at)}`;
const ofDays = new Intl.DateTimeFormat(undefined, { dateStyle: "full" });
const inDays = (at) => {
  const days = daysTo(at);
  return days === 0 ? "Today" : days === -1 ? "Yesterday" : ofDays.format(at);
};
const forms = { short: inShort, long: inFull, exact: (at) => exactly.format(at), day: inDays };
const localize = (within) => {
  for (const each of all("time[data-local]", within)) {
    const at = new Date(each.dateTime);
    const text = (forms[each.dataset.local] ?? relative)(at);
    if (each.textContent !== text) each.textContent = text;
    each.title = `${withZone.format(at)}\n${each.dateTime}`;
  }
};
setInterval(() => document.hidden || localize(document), 30_000);

// form[data-once]: one click counts. The server recognizes a second one by its key; this only shows it.
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
  if (opener) document.getElementById(opener.dataset.dialog).showModal();
});

localize(document);
