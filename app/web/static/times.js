// Times in the reader's language and time zone.

import { all } from "./dom.js";

// time[data-local]: how long ago it was. The title has the exact time, in the reader's zone and in UTC.
// ="short": the time of day if it was today, otherwise the date. ="long": how long ago, and the exact time.
// ="exact": the exact time. ="day": only the day.
const exactly = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
const withZone = new Intl.DateTimeFormat(undefined, { dateStyle: "full", timeStyle: "long" });
const ofDay = new Intl.DateTimeFormat(undefined, { timeStyle: "short" });
const ofDaySeconds = new Intl.DateTimeFormat(undefined, { timeStyle: "medium" });
export const ofYear = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric" });
const ofYears = new Intl.DateTimeFormat(undefined, { dateStyle: "medium" });
const since = new Intl.RelativeTimeFormat(document.documentElement.lang, { numeric: "auto", style: "short" });
export const midnight = (at) => new Date(at.getFullYear(), at.getMonth(), at.getDate());
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
export const localize = (within) => {
  for (const each of all("time[data-local]", within)) {
    const at = new Date(each.dateTime);
    const text = (forms[each.dataset.local] ?? relative)(at);
    if (each.textContent !== text) each.textContent = text;
    each.title = `${withZone.format(at)}\n${each.dateTime}`;
  }
};
setInterval(() => document.hidden || localize(document), 30_000);

localize(document);
