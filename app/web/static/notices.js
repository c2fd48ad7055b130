// Live news: the bell, the number in the title, and browser notifications. Every page works without it. Each page
// receives the news from its own stream or from the leading page; only the leading page shows browser notifications.

import { all, byId, page } from "./dom.js";
import { localize } from "./times.js";

const bell = byId("bell");
const { home, live, me } = bell.dataset;
const inbox = byId("inbox");
const link = bell.querySelector(".bell");

const read = async (address) => (await page(address)).getElementById("bell");

// The title.
const entitle = () => {
  const unread = bell.dataset.unread;
  const wanted = (unread === "0" ? "" : `(${unread}) `) + document.title.replace(/^\(\d+\+?\) /, "");
  if (document.title !== wanted) document.title = wanted;
};
new MutationObserver(entitle).observe(document.querySelector("title"), { childList: true });

// Browser notifications, after somebody has turned them on in this browser.
const WANTED = `browser notifications ${me}`;
const SHOWN = `last shown ${me}`;
const isSupported = "Notification" in window;
const isOn = () => isSupported && Notification.permission === "granted" && localStorage.getItem(WANTED) === "on";
const isInView = (conversation) => document.hasFocus() && byId("talk")?.dataset.id === conversation;
const show = (each) => {
  const { conversation, path, title, text } = each.dataset;
  if (isInView(conversation)) return;
  const shown = new Notification(title, { body: text, tag: conversation });
  shown.addEventListener("click", () => {
    shown.close();
    focus();
    location.assign(path);
  });
};
const showNew = (fresh) => {
  const last = localStorage.getItem(SHOWN) ?? "";
  const found = all("data", fresh).filter((each) => each.value > last).reverse();
  if (!found.length) return;
  localStorage.setItem(SHOWN, found.at(-1).value);
  found.forEach(show);
};
const showState = () => {
  const state = !isSupported ? "unsupported" : Notification.permission === "denied" ? "denied" : isOn() ? "on" : "off";
  for (const each of all("#desktop [data-state]")) each.hidden = each.dataset.state !== state;
};
const turn = async (way) => {
  if (way === "on") {
    await Notification.requestPermission();
    // Existing notifications are not news.
    const told = all("data", await read(`${home}/bell`));
    localStorage.setItem(SHOWN, told[0]?.value ?? "");
  }
  localStorage.setItem(WANTED, way);
  showState();
};
addEventListener("click", (event) => {
  const button = event.target.closest("[data-desktop]");
  if (button) turn(button.dataset.desktop).catch(showState);
});
showState();

// The bell and its list.
const isOpen = () => link.ariaExpanded === "true";
const open = (isWanted) => {
  link.ariaExpanded = String(isWanted);
  const list = bell.querySelector(".bell-list");
  if (list) list.hidden = !isWanted;
};
const refresh = async (isSeen) => {
  const fresh = await read(`${home}/bell${isSeen ? "" : "?background=true"}`);
  localize(fresh);
  bell.dataset.unread = fresh.dataset.unread;
  entitle();
  link.ariaLabel = fresh.querySelector(".bell").ariaLabel;
  link.replaceChildren(...fresh.querySelector(".bell").childNodes);
  const list = bell.querySelector(".bell-list");
  if (!list?.contains(document.activeElement)) {
    list?.remove();
    bell.append(fresh.querySelector(".bell-list"));
    open(isOpen());
  }
  if (isLeading && isOn()) showNew(fresh);
};
addEventListener("click", async (event) => {
  if (!bell.contains(event.target)) return open(false);
  if (!link.contains(event.target) || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  if (isOpen()) return open(false);
  link.ariaExpanded = "true";
  await refresh(true).catch(() => (location.href = link.href));
});

// Fetches the bell soon after an event, but at most every five seconds. A hidden page waits until it is visible, unless
// it shows the browser notifications.
const PAUSE_MS = 5000;
let isLeading = false;
let isStale = false;
let asked = 0;
let timer = 0;
const ask = () => {
  isStale = document.hidden;
  if (timer || (document.hidden && !(isLeading && isOn()))) return;
  timer = setTimeout(async () => {
    timer = 0;
    asked = Date.now();
    // If the server is unavailable, the next event asks again.
    await refresh(!document.hidden).catch(() => (isStale = true));
  }, Math.max(asked + PAUSE_MS - Date.now(), 700 + Math.random() * 800));
};
document.addEventListener("visibilitychange", () => !document.hidden && isStale && ask());

const others = new BroadcastChannel(`notices ${me}`);
others.addEventListener("message", ask);
const hear = (kind, data) => {
  const about = JSON.parse(data);
  const isNew = kind === "notification" && !bell.dataset.ignored.split(" ").includes(about.kind);
  const isRead = kind === "conversation" && !about.unread && isInView(about.id);
  if (!isNew && !isRead) return;
  ask();
  if (isLeading || isRead) others.postMessage(kind);
};
const listen = () => {
  const stream = new EventSource(live, { withCredentials: true });
  stream.addEventListener("notification", (event) => hear("notification", event.data));
  stream.addEventListener("error", () => {
    if (stream.readyState === EventSource.CLOSED) setTimeout(listen, 5000 + Math.random() * 5000);
  });
};
if (inbox) {
  // The inbox has a stream of its own.
  addEventListener("live", (event) => hear(event.detail.kind, event.detail.data));
  // Another conversation was opened, which marks its notifications as read.
  new MutationObserver(() => {
    ask();
    others.postMessage("read");
  }).observe(inbox, { childList: true });
}
// Leads as long as this page exists. In browsers without locks, each page leads.
const lead = () => {
  isLeading = true;
  if (!inbox) listen();
  return new Promise(() => {});
};
if (navigator.locks) navigator.locks.request(`notices ${me}`, lead);
else lead();
entitle();
