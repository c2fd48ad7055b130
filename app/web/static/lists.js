// Lists, their filters, and charts: times in the reader's time zone, presets, cards on phones, truncated text.

import { all } from "./dom.js";
import { midnight, ofYear } from "./times.js";

// input[data-moment]: shown in the reader's time zone, and sent in UTC. Without the script, it is shown in UTC, too.
const inZone = (at) => {
  const text = new Date(at - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 23);
  return text.replace(/(:00)?\.000$/, "");
};
const zoneName = (at) =>
  new Intl.DateTimeFormat(undefined, { timeZoneName: "short" }).formatToParts(at).find((each) => each.type === "timeZoneName").value;
const nameZone = (within) => all("[data-zone-name]", within).forEach((each) => (each.textContent = zoneName(new Date())));
nameZone(document);
addEventListener("refreshed", (event) => nameZone(event.detail));
for (const field of all("input[data-moment]")) {
  const at = new Date(field.dataset.moment);
  if (!isNaN(at)) field.value = inZone(at);
}
addEventListener("formdata", (event) => {
  for (const field of all("input[data-moment]", event.target)) {
    const at = new Date(field.value);
    if (field.value && !isNaN(at)) event.formData.set(field.name, at.toISOString());
  }
});

// select[data-own-zone]: offers the reader's own time zone, which only the browser knows.
for (const field of all("select[data-own-zone]")) {
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const known = [...field.options].find((option) => (option.value || option.text) === zone);
  if (!known) field.add(new Option(zone));
}

// a[data-preset]: sets a range of time in its address, by the reader's days.
const ranges = {
  hour: (now) => [new Date(now - 3_600_000)],
  today: (now) => [midnight(now)],
  yesterday: (now) => [new Date(now.getFullYear(), now.getMonth(), now.getDate() - 1), midnight(now)],
  week: (now) => [new Date(now.getFullYear(), now.getMonth(), now.getDate() - 7, now.getHours(), now.getMinutes())],
};
const aim = (link) => {
  const address = new URL(link.href);
  const [from, before] = ranges[link.dataset.preset](new Date());
  address.searchParams.set("since", from.toISOString());
  if (before) address.searchParams.set("until", before.toISOString());
  link.href = address.href;
};
all("a[data-preset]").forEach(aim);
addEventListener("click", (event) => {
  const link = event.target.closest("a[data-preset]");
  if (link) aim(link);
});

// svg [data-since]: the marks below a chart are at round times of the reader's time zone; without the script, of UTC.
const clockTime = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
const roundTimes = function* (since, until, minutes) {
  let last = 0;
  for (let day = midnight(since); day <= until; day = new Date(day.getFullYear(), day.getMonth(), day.getDate() + 1)) {
    const number = Date.UTC(day.getFullYear(), day.getMonth(), day.getDate()) / 864e5;
    if (minutes > 1440 && number % (minutes / 1440)) continue;
    for (let minute = 0; minute < 1440; minute += minutes) {
      const at = new Date(day.getFullYear(), day.getMonth(), day.getDate(), 0, minute);
      // The local time may skip an hour.
      if (at >= since && at <= until && at > last) yield (last = at);
    }
  }
};
for (const axis of all("svg [data-since]:has(text)")) {
  const [since, until] = [new Date(axis.dataset.since), new Date(axis.dataset.until)];
  const [left, right] = [Number(axis.dataset.left), Number(axis.dataset.right)];
  const minutes = [10, 60, 240, 1440].find((each) => (until - since) / 6e4 / each < 8) ?? 5 * 1440;
  const sample = axis.querySelector("text");
  const marks = [...roundTimes(since, until, minutes)].map((at) => {
    const mark = sample.cloneNode();
    mark.setAttribute("x", (left + ((at - since) * (right - left)) / (until - since)).toFixed(1));
    mark.textContent = (minutes < 1440 ? clockTime : ofYear).format(at);
    return mark;
  });
  axis.replaceChildren(...marks);
}

// Filters are folded on a phone.
const narrow = matchMedia("(max-width: 50rem)");
const fold = () => all(".filters > details").forEach((each) => (each.open = !narrow.matches));
narrow.addEventListener("change", fold);
fold();

// On cards, each cell has its label, unless it is empty.
const arrange = (within) => {
  for (const table of all("table[data-rows]", within)) {
    const labels = all("thead th", table).map((each) => each.textContent.trim());
    for (const row of all("tbody > tr", table)) {
      [...row.children].forEach((cell, place) => {
        const text = cell.textContent.trim();
        cell.classList.toggle("nothing", text === "–" || (!text && !cell.firstElementChild));
        const isClear = cell.matches(".lead, :has(.state), :has(form, .button, button, details)");
        if (labels[place] && !isClear) cell.dataset.label = labels[place];
      });
    }
  }
};
arrange(document);
addEventListener("refreshed", (event) => arrange(event.detail));

// The title shows truncated text in full.
addEventListener("pointerover", (event) => {
  const cut = event.target.closest?.(":is(td, th).wide, .line, .clamped");
  if (cut && !cut.title && cut.scrollWidth > cut.clientWidth) cut.title = cut.textContent.trim().replace(/\s+/g, " ");
});

// input[data-group]: stands for all checkboxes of its group, and shows their state.
const showGroup = (group) => {
  const parts = all("input[type=checkbox]:not([data-group])", group);
  const head = group.querySelector("[data-group]");
  const chosen = parts.filter((each) => each.checked).length;
  head.checked = chosen === parts.length;
  head.indeterminate = chosen > 0 && chosen < parts.length;
};
addEventListener("change", (event) => {
  const group = event.target.closest(".group");
  if (!group?.querySelector("[data-group]")) return;
  if (event.target.matches("[data-group]")) {
    for (const each of all("input[type=checkbox]:not([data-group])", group)) each.checked = event.target.checked;
  }
  showGroup(group);
});
all(".group:has([data-group])").forEach(showGroup);
