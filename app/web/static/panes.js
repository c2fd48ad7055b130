// Moving from one conversation to another: swaps the two panes beside the list.

import { beginComposer, keepNow, kept, restore, showUnsent } from "./composer.js";
import { all, byId, page } from "./dom.js";
import { nameZones } from "./later.js";
import * as offline from "./offline.js";
import { removeLeft } from "./rows.js";
import { fieldsOf, inbox, panesOf, posted, scrolled, talk } from "./talks.js";
import { isAtEnd, markDays, older, toEnd } from "./thread.js";
import { localize } from "./times.js";
import { look, looks } from "./viewers.js";

let shows = 0;
let going = null; // the navigation in progress: its address, and a promise
export const goTo = (address) => {
  if (going?.address === address) return going.shown;
  const mine = { address };
  mine.shown = show(address).finally(() => (going = going === mine ? null : going));
  going = mine;
  return mine.shown;
};
// `keep` is called just before the panes are replaced; the function that it returns is called just after.
const show = async (address, { push = true, keep = () => () => {} } = {}) => {
  const mine = (shows += 1);
  if (push) await keepNow();
  const fresh = await page(panesOf(address));
  if (mine !== shows) return; // another conversation was requested meanwhile
  const restore = keep();
  if (push) history.pushState(null, "", address);
  document.title = fresh.title;
  // Unfinished changes to the contact stay while the conversation is reloaded.
  const isKept = fresh.getElementById("talk").dataset.id === talk().id && document.querySelector("#side .edit[open]");
  const panes = (isKept ? ["talk"] : ["talk", "side"]).map((id) => fresh.getElementById(id)).filter(Boolean);
  if (!isKept) byId("side")?.remove();
  byId("talk").replaceWith(...panes);
  inbox.classList.toggle("has-conversation", Boolean(talk().id));
  inbox.classList.toggle("shows-contact", new URL(location).searchParams.get("pane") === "contact");
  for (const pane of panes) localize(pane);
  for (const link of all("#rows a[aria-current]")) link.removeAttribute("aria-current");
  removeLeft();
  byId(`row-${talk().id}`)?.querySelector("a").setAttribute("aria-current", "true");
  begin();
  restore();
};
let isReloading = false;
// Keeps the reader's place: text with its caret, an open menu, and the focus.
const keepPlace = () => {
  const { activeElement: focused } = document;
  const written = kept();
  const head = document.querySelector("#talk > header:has(details[open])");
  const caret = focused.matches("textarea, input") && focused.selectionStart !== null ? [focused.selectionStart, focused.selectionEnd] : null;
  const key = byId("talk").contains(focused) && focused.dataset.key;
  return () => {
    restore(written);
    const fresh = head && document.querySelector("#talk > header");
    if (fresh) {
      fresh.replaceWith(head);
      talk().stale = "true"; // so that it is reloaded once the menu is closed
    }
    if (document.activeElement === focused) return;
    const next = focused.isConnected ? focused : (focused.id && byId(focused.id)) || (key && document.querySelector(`#talk [data-key="${key}"]`));
    (next || scrolled())?.focus();
    if (caret && next) next.setSelectionRange(...caret);
  };
};
export const reload = async () => {
  if (going) return going.shown.catch(() => {});
  isReloading = true;
  await show(location.href, { push: false, keep: keepPlace }).finally(() => (isReloading = false));
};
// Changes by others: the conversation's head is reloaded, but not while one of its menus is open.
let talkNow = null;
const isHeadOld = () => {
  if (document.hidden || isReloading || document.querySelector("#talk > header details[open]")) return false;
  if (talk().stale) return true;
  const { id, status, assignee_id, snoozed_until, labels } = talkNow ?? {};
  if (!id || id !== talk().id) return false;
  return JSON.stringify([status, assignee_id, snoozed_until, labels]) !== JSON.stringify(JSON.parse(talk().head));
};
export const noteHead = (shown) => {
  talkNow = shown;
  readHead();
};
export const readHead = async () => {
  if (!isHeadOld()) return;
  try {
    const fresh = (await page(panesOf(location.href))).getElementById("talk");
    if (fresh.dataset.id !== talk().id || !isHeadOld()) return;
    talk().head = fresh.dataset.head;
    delete talk().stale;
    localize(fresh);
    const header = document.querySelector("#talk > header");
    const key = header.contains(document.activeElement) && document.activeElement.dataset.key;
    document.querySelector("#talk > .marks")?.remove();
    header.replaceWith(...fresh.querySelectorAll(":scope > header, :scope > .marks"));
    nameZones();
    if (key) document.querySelector(`#talk > header [data-key="${key}"]`)?.focus();
  } catch {
    // The next change asks again.
  }
};
document.addEventListener("toggle", readHead, true);
export const begin = () => {
  nameZones();
  if (!scrolled()) return;
  markDays();
  showUnsent();
  toEnd();
  scrolled().addEventListener("scroll", () => {
    if (scrolled().scrollTop < 80) older();
    if (isAtEnd()) byId("to-newest")?.remove();
  });
  const composer = byId("composer");
  if (!composer) return;
  beginComposer(composer);
  if (Number(talk().unread)) markRead();
  looks.clear();
  look();
};
export const markRead = () => {
  const composer = byId("composer");
  if (!composer || document.hidden) return;
  talk().unread = 0;
  posted(composer.dataset.read, fieldsOf({ do: "read" }));
};

addEventListener("click", (event) => {
  if (event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
  const link = event.target.closest("#older, #rows a, .talk .to-contact, .side-pane .back");
  if (!link) return;
  event.preventDefault();
  if (link.id === "older") older();
  else goTo(link.href).catch((error) => lookElsewhere(error, link.href));
});
addEventListener("popstate", () => show(location.href, { push: false }).catch((error) => lookElsewhere(error, location.href)));
// The conversation cannot be shown here. Navigate to it, so that the browser shows why, or wait until the server is
// back.
let wantedLater = null;
export const lookElsewhere = (error, address) => {
  if (!(error instanceof TypeError)) {
    location.href = address;
    return;
  }
  wantedLater = address;
  offline.suspect();
  offline.say("The conversation opens then.");
};
addEventListener("back", () => {
  keepNow();
  if (wantedLater) goTo(wantedLater).catch((error) => lookElsewhere(error, wantedLater));
  wantedLater = null;
});
