// Watches whether the server can be reached. While it cannot, the page says so and blocks links, which would lead to
// the browser's error page. Scripts report failed requests to `offline.suspect`; the event `back` says that the server
// has returned.

import { byId } from "./dom.js";

const ASK_EVERY_MS = 3000;
const line = byId("offline");
const { probe } = line.dataset;
const said = line.textContent;
let isAway = false;
let isAsking = false;

const change = (away) => {
  if (away === isAway) return;
  isAway = away;
  line.hidden = !away;
  line.textContent = said;
  if (!away) dispatchEvent(new CustomEvent("back"));
};
const isReached = async () => {
  if (!navigator.onLine) return false;
  try {
    return (await fetch(probe, { method: "HEAD", cache: "no-store", signal: AbortSignal.timeout(ASK_EVERY_MS) })).status < 500;
  } catch {
    return false;
  }
};
export const suspect = async () => {
  if (isAsking) return;
  isAsking = true;
  while (!(await isReached())) {
    change(true);
    await new Promise((done) => setTimeout(done, ASK_EVERY_MS));
  }
  isAsking = false;
  change(false);
};
export const say = (what) => (line.textContent = `${said} ${what}`);

addEventListener("offline", () => {
  change(true);
  suspect();
});
addEventListener("click", (event) => {
  const link = isAway && !event.defaultPrevented && event.target.closest("a[href]");
  if (!link || link.target || link.getAttribute("href").startsWith("#")) return;
  event.preventDefault();
  say("No other page can be opened before that.");
});
if (!navigator.onLine) suspect();
