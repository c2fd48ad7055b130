// The inbox without reloads: live updates, older messages, the next conversation; composer.js sends. Every page works
// without it; the elements it adds look like those of the templates in templates/inbox.
"use strict";

const inbox = document.getElementById("inbox");
const me = inbox.dataset.me;
const people = JSON.parse(inbox.dataset.people);
const byId = (id) => document.getElementById(id);
const made = (tag, attributes, ...children) => {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) if (value !== null) element.setAttribute(name, value);
  element.append(...children.filter((each) => each !== null));
  return element;
};
// Splits no emoji and no accented letter.
const cut = (text, most) => {
  if (text.length <= most) return text;
  let end = 0;
  for (const { index, segment } of new Intl.Segmenter().segment(text)) {
    if (index + segment.length > most) break;
    end = index + segment.length;
  }
  return text.slice(0, end);
};
const page = async (address) => {
  const response = await fetch(address, { headers: { Accept: "text/html" } });
  if (!response.ok || response.redirected) throw new Error(`${response.status}`);
  return new DOMParser().parseFromString(await response.text(), "text/html");
};
// The address of a conversation without the list, which stays.
const panesOf = (address) => {
  const { pathname, search } = new URL(address, location);
  return `${pathname}${/\/cnv_\w+$/.test(pathname) ? "/panes" : ""}${search}`;
};
const hear = (text) => (byId("heard").textContent = text);

// Messages, as the macro `message` renders them.
const STATUSES = {
  queued: "Queued", sending: "Sending", scheduled: "Scheduled", sent: "Sent", delivered: "Delivered", read: "Read",
  failed: "Not sent", unknown: "Perhaps sent",
};
const SOUNDS = ["audio/mpeg", "audio/mp4", "audio/aac", "audio/ogg", "audio/wav"];
const PICTURES = ["image/png", "image/jpeg", "image/gif", "image/webp"];
const talk = () => byId("talk").dataset;
const size = (bytes) => (bytes < 1000 ? `${bytes} B` : bytes < 1e6 ? `${Math.round(bytes / 1000)} kB` : `${(bytes / 1e6).toFixed(1)} MB`);
const clock = (at) => made("time", { datetime: at, title: at, "data-local": "" }, at);
const author = (of) =>
  ({ contact: talk().name, member: people[of.id] ?? "Support", automation: "Automation", broadcast: "Broadcast", provider: "In the provider's app" })[of.type] ?? "API";
const linked = (of) =>
  of.type === "broadcast" ? made("a", { href: `${inbox.dataset.home.replace(/inbox$/, "broadcasts")}/${of.id}` }, author(of)) : author(of);
const attachment = (file) => {
  const name = file.name ?? file.content_type;
  if (file.bytes === null) return made("span", { class: "file muted" }, `${name}, on its way`);
  const link = { href: file.address, target: "_blank", rel: "noopener" };
  if (PICTURES.includes(file.content_type)) {
    return made("a", { class: "picture", ...link }, made("img", { src: file.address, alt: file.name ?? "Picture" }));
  }
  const named = made("a", { class: "file", ...link }, `${name} `, made("span", { class: "muted" }, size(file.bytes)));
  if (!SOUNDS.includes(file.content_type)) return named;
  const sound = made("audio", { controls: "", preload: "none", src: file.address, "aria-label": file.name ?? "Sound" });
  return made("span", { class: "sound" }, sound, " ", named);
};
// Turns web addresses in a text into links, like the template filter `linked`.
const ADDRESS = /(https?:\/\/[!-~]*[a-z0-9/&=#_~$%*+@-])/i;
const textOf = (text) =>
  made("p", { class: "text" }, ...text.split(ADDRESS).map((part, at) =>
    at % 2 ? made("a", { href: part, target: "_blank", rel: "noopener noreferrer nofollow" }, part) : part));
const formTo = (path, look, ...children) =>
  made("form", { method: "post", class: look, "data-once": "", action: `${inbox.dataset.home}/${path}` },
    ...[...fieldsOf({})].map(([name, value]) => made("input", { type: "hidden", name, value })), ...children);
const again = (message) =>
  formTo(`${message.conversation_id}/messages/${message.id}/resend`, "inline again",
    made("button", { class: "small" }, "Send again"),
    message.status === "unknown" ? made("span", { class: "muted" }, " The contact may then get it twice.") : null);
const drawn = (message) => {
  const said = [STATUSES[message.status] ?? message.status, message.failure?.detail].filter(Boolean).join(": ");
  const bubble = made("div", { class: "bubble", dir: "auto" },
    message.text ? textOf(message.text) : null, ...message.attachments.map(attachment));
  if (message.buttons?.length) {
    bubble.append(made("p", { class: "offered" }, ...message.buttons.map((each) => made("span", {}, each.label))));
  }
  const isOut = message.direction === "out";
  const item = made("li", { class: `message ${message.direction}`, id: message.id, "data-status": message.status },
    made("p", { class: "by" }, made("bdi", { class: "author" }, linked(message.author)), " ",
      clock(message.provider_time ?? message.created_at)),
    bubble, isOut ? made("p", { class: "status" }, said) : null,
    isOut && byId("composer") && ["failed", "unknown"].includes(message.status) ? again(message) : null);
  localize(item);
  return item;
};
const drawnNote = (note) => {
  const remove = made("button", { class: "small plain", "aria-label": "Delete this note" }, "Delete");
  const item = made("li", { class: "message note", id: note.id },
    made("div", { class: "by" }, made("bdi", { class: "author" }, author(note.author)), " wrote a note ", clock(note.created_at), " ",
      byId("composer") ? formTo(`${note.conversation_id}/notes/${note.id}/delete`, "inline", remove) : null),
    made("div", { class: "bubble", dir: "auto" }, textOf(note.text)));
  localize(item);
  return item;
};

// The thread. It does not move while somebody reads: it follows new messages only at its end.
const scrolled = () => byId("scrolled");
const isAtEnd = () => scrolled().scrollHeight - scrolled().scrollTop - scrolled().clientHeight < 60;
const toEnd = () => {
  byId("to-newest")?.remove();
  scrolled().scrollTop = scrolled().scrollHeight;
};
const offerNewest = () => {
  if (byId("to-newest")) return;
  const button = made("button", { type: "button", id: "to-newest", class: "to-newest small" }, "New messages ↓");
  button.addEventListener("click", toEnd);
  scrolled().append(button);
};
// Inserts the item at its place in time, or replaces the existing one; returns whether it is new.
const setIn = (item) => {
  const there = byId(item.id);
  const follows = isAtEnd();
  if (there) {
    there.replaceWith(item);
  } else {
    const shown = all("#thread > .message:not([data-pending])");
    const later = shown.find((each) => timeOf(each) > timeOf(item));
    // It lies among older messages that are not loaded, and will come with them.
    if (byId("older") && later && later === shown[0]) return false;
    byId("thread").querySelector(".nothing")?.remove();
    item.classList.add("new");
    byId("thread").insertBefore(item, later ?? byId("thread").querySelector("[data-pending]"));
    if (!follows) offerNewest();
  }
  markDays();
  if (follows) toEnd();
  return !there;
};
const put = (message) => {
  if (isForLater(message)) return;
  if (setIn(drawn(message)) && message.direction === "in") hear(`${talk().name}: ${message.text ?? "a file"}`);
};
const putNote = (note) => {
  if (setIn(drawnNote(note)) && note.author.id !== me) hear(`${author(note.author)} wrote a note: ${note.text}`);
};
// Dates are above their first message, in the reader's time zone. A correct one stays, so that it is not read aloud
// again.
const timeOf = (item) => Date.parse(item.querySelector("time")?.dateTime ?? new Date().toISOString());
const dayOf = (item) => midnight(new Date(timeOf(item))).getTime();
const markDays = () => {
  const right = new Set();
  let day = 0;
  for (const item of all("#thread > .message")) {
    if (dayOf(item) === day) continue;
    day = dayOf(item);
    let above = item.previousElementSibling;
    if (!above?.matches(".day") || dayOf(above) !== day) {
      const time = clock(new Date(timeOf(item)).toISOString());
      time.dataset.local = "day";
      above = made("li", { class: "day" }, time);
      localize(above);
      item.before(above);
    }
    right.add(above);
  }
  for (const each of all("#thread > .day")) if (!right.has(each)) each.remove();
};
const older = async () => {
  const link = byId("older");
  if (!link || link.ariaBusy) return;
  link.ariaBusy = "true";
  try {
    const earlier = await page(panesOf(link.href));
    const height = scrolled().scrollHeight;
    const items = [...earlier.getElementById("thread").children].filter((each) => !byId(each.id));
    localize(earlier);
    byId("thread").prepend(...items);
    markDays();
    const next = earlier.getElementById("older");
    if (next) link.href = next.href;
    else link.parentElement.remove();
    scrolled().scrollTop += scrolled().scrollHeight - height;
  } catch {
    // The link stays: a click tries again.
  }
  link.ariaBusy = null;
};

// Repeats until there is a response.
const posted = async (address, data) => {
  for (let pause = 500; ; pause = Math.min(pause * 2, 15_000)) {
    try {
      const response = await fetch(address, { method: "POST", body: data, headers: { Accept: "application/json" } });
      if (response.redirected) return { status: 401, body: { detail: "You are not signed in any more. Sign in in another window, then send it again." } };
      if (response.status < 500) {
        return { status: response.status, body: response.status === 204 ? {} : await response.json().catch(() => ({})) };
      }
    } catch {
      offline.suspect();
    }
    await new Promise((done) => {
      setTimeout(done, pause);
      addEventListener("back", done, { once: true });
    });
  }
};
const fieldsOf = (fields) => {
  const data = new FormData();
  const token = document.querySelector("[name=csrf_token]").value;
  for (const [name, value] of Object.entries({ csrf_token: token, once: crypto.randomUUID(), ...fields })) data.set(name, value);
  return data;
};

// The list.
const view = inbox.dataset;
const belongs = (shown) => {
  if (view.label && !shown.labels.includes(view.label)) return false;
  if (view.channel && shown.channel_id !== view.channel) return false;
  if (view.assignee && (shown.assignee_id ?? "none") !== view.assignee) return false;
  const isAwake = shown.status === "open" && !shown.snoozed_until;
  return {
    mine: isAwake && shown.assignee_id === me,
    unassigned: isAwake && !shown.assignee_id,
    all: isAwake,
    waiting: shown.status === "open" && shown.waiting_since !== null,
    snoozed: shown.snoozed_until !== null,
    closed: shown.status === "closed",
  }[view.view];
};
const rowsList = byId("rows");
const channels = JSON.parse(view.channels);
const shownList = new URLSearchParams(location.search);
const isFirstPage = !shownList.has("after");
for (const name of ["after", "before", "pane"]) shownList.delete(name);
const isByLatest = ["mine", "unassigned", "all"].includes(view.view);
// The last messages of conversations that the list does not show, as they arrived.
const MOST_TOLD = 500;
const told = new Map();
const gistOf = (message) => (message.direction === "out" ? "↩ " : "") + cut(message.text ?? "…", 140);
// A row, as rows.html renders it.
const row = (shown, gist, isDraft) => {
  const short = clock(shown.last_message_at ?? shown.created_at);
  short.dataset.local = "short";
  const mark = (kind, text) => made("span", { class: kind }, text);
  const name = shown.contact_name ?? "Deleted contact";
  const tick = made("input", { type: "checkbox", name: "conversation_id", value: shown.id, form: "selection",
    "aria-label": `Choose the conversation with ${name}` });
  const marks = [
    channels[shown.channel_id] ? mark("channel", channels[shown.channel_id]) : null,
    shown.assignee_id ? mark("assignee", people[shown.assignee_id] ?? "a former member") : null,
    shown.snoozed_until ? mark("state warn", "snoozed") : null,
    shown.waiting_since && !shown.snoozed_until ? mark("state busy waits", "waits") : null,
    ...shown.labels.slice(0, 3).map((label) => made("bdi", { class: "state" }, label.length > 20 ? `${cut(label, 17)}...` : label)),
    shown.labels.length > 3 ? mark("muted", `+${shown.labels.length - 3}`) : null,
  ].filter(Boolean);
  const item = made("li", { class: shown.unread ? "entry unread" : "entry", id: `row-${shown.id}`, "data-contact": name, "data-channel": shown.channel_id },
    byId("selection") ? made("label", { class: "tick" }, tick) : null,
    made("a", { href: `${view.home}/${shown.id}?${shownList}`, "aria-current": talk().id === shown.id ? "true" : null },
      made("span", { class: "line" }, made("bdi", { class: "name" }, name),
        shown.unread ? made("span", { class: "count", "aria-label": `${shown.unread} unread` }, shown.unread < 100 ? shown.unread : "99+") : null,
        short),
      made("span", { class: "line" }, isDraft ? mark("draft", "Draft") : null, made("span", { class: "gist", dir: "auto" }, gist)),
      made("span", { class: "line marks" }, ...marks.flatMap((each) => [each, " "]))));
  localize(item);
  return item;
};
const nextPage = () => document.querySelector(".list .pager [rel=next]");
const lay = (item) => {
  if (view.view === "waiting" || view.view === "snoozed") {
    if (!nextPage()) rowsList.append(item); // otherwise it is on the last page
  } else rowsList.prepend(item);
  byId("no-rows").hidden = true;
  if (isByLatest && rowsList.children.length > MOST_ROWS) shorten();
};
// New rows arrive all day: the oldest move to the next page, which begins a millisecond early, as times here are
// truncated.
const MOST_ROWS = 100;
const shorten = () => {
  if (rowsList.lastElementChild.contains(document.activeElement)) return;
  rowsList.lastElementChild.remove();
  const last = rowsList.lastElementChild;
  const at = new Date(Date.parse(last.querySelector("time").dateTime) + 1).toISOString();
  const query = new URLSearchParams(shownList);
  query.set("after", `${at}~${last.id.replace("row-", "")}`);
  const link = nextPage() ?? made("a", { class: "button small", rel: "next" }, "Next page");
  link.href = `${view.home}?${query}`;
  if (!link.isConnected) rowsList.after(made("nav", { class: "pager", "aria-label": "Pages of the list" }, link));
};
const draw = (shown) => {
  const there = byId(`row-${shown.id}`);
  const gist = told.get(shown.id) ?? there?.querySelector(".gist")?.textContent;
  if (gist === undefined) return false;
  const item = row(shown, gist, Boolean(there?.querySelector(".draft")));
  if (!there) {
    lay(item);
    return true;
  }
  if (there.querySelector(".tick input")?.checked) item.querySelector(".tick input").checked = true;
  // The keys continue from the row where they were.
  const hasFocus = there.contains(document.activeElement);
  if (there.hasAttribute("aria-selected")) item.setAttribute("aria-selected", "true");
  there.replaceWith(item);
  if (hasFocus) item.querySelector("a").focus();
  return true;
};
// A conversation's event and its message's may arrive in either order.
const MESSAGE_MS = 300;
// Rows that now belong here, but whose message did not arrive: they are fetched one after the other, so that a flood
// sends no more requests than the server can answer.
const wanted = new Map();
let isFetching = false;
const fetchRows = async () => {
  if (isFetching) return;
  isFetching = true;
  for (const [id, shown] of wanted) {
    wanted.delete(id);
    if (draw(shown)) continue;
    try {
      const item = (await page(`${view.home}/${id}/row${location.search}`)).querySelector("li");
      localize(item);
      if (talk().id === id) item.querySelector("a").setAttribute("aria-current", "true");
      if (!byId(item.id)) lay(item);
    } catch {
      // It is deleted, or the server is unavailable: the stream's end reloads everything.
    }
  }
  isFetching = false;
};
const update = (shown) => {
  if (view.view === "search") return; // it shows the matches of a search
  const there = byId(`row-${shown.id}`);
  if (belongs(shown)) {
    if (!(there || isFirstPage) || draw(shown)) return;
    wanted.set(shown.id, shown);
    if (!document.hidden) setTimeout(fetchRows, MESSAGE_MS);
  } else if (there) {
    // Do not remove a row while it is open or has the focus.
    if (talk().id === shown.id || there.contains(document.activeElement)) there.classList.add("left");
    else there.remove();
    byId("no-rows").hidden = rowsList.children.length > 0;
  }
};
const removeLeft = () => {
  for (const each of all("#rows .left")) if (each.id !== `row-${talk().id}` && !each.contains(document.activeElement)) each.remove();
  byId("no-rows").hidden = rowsList.children.length > 0;
};
rowsList.addEventListener("focusout", () => setTimeout(removeLeft));
// Moves the focus to the next row after these conversations were changed.
const DEALT_WITH_MS = 5000; // then a row that is still there counts again
const dealtWith = new Set();
const reachNext = (ids) => {
  for (const id of ids) dealtWith.add(id);
  setTimeout(() => ids.forEach((id) => dealtWith.delete(id)), DEALT_WITH_MS);
  const found = [...rowsList.children];
  const isDone = (each) => ids.includes(each.id.replace("row-", ""));
  const isNext = (each) => !dealtWith.has(each.id.replace("row-", "")) && !each.matches(".left");
  const focused = found.findIndex((each) => isDone(each) && each.contains(document.activeElement));
  const at = focused < 0 ? found.findLastIndex(isDone) : focused;
  const next = found.slice(at + 1).find(isNext) ?? found.slice(0, at + 1).findLast(isNext);
  if (next) keys.reach(next);
  if (!next?.contains(document.activeElement)) (scrolled() ?? byId("main")).focus();
};
const raise = (message) => {
  if (message.status === "scheduled") return;
  const there = byId(`row-${message.conversation_id}`);
  if (!there) {
    told.set(message.conversation_id, gistOf(message));
    if (told.size > MOST_TOLD) told.delete(told.keys().next().value);
    return;
  }
  if (!there.querySelector(".gist")) return;
  told.delete(message.conversation_id);
  there.querySelector(".gist").textContent = gistOf(message);
  const time = clock(message.created_at);
  time.dataset.local = "short";
  there.querySelector("time").replaceWith(time);
  localize(there);
  // Not while the pointer or the focus is on the list.
  const isUsed = rowsList.matches(":hover") || rowsList.contains(document.activeElement);
  if (isByLatest && isFirstPage && !isUsed) rowsList.prepend(there);
};
let countsAsked = false;
const count = () => {
  if (countsAsked) return;
  countsAsked = true;
  setTimeout(async () => {
    countsAsked = false;
    if (document.hidden) return;
    const response = await fetch(`${view.home}/counts`).catch(() => null);
    if (!response?.ok) return;
    const counts = await response.json();
    for (const each of all("[data-count]")) each.textContent = counts[each.dataset.count]?.toLocaleString("en") ?? "";
  }, 1000 + Math.random() * 2000);
};

// Moving from one conversation to another. `show` swaps the two panes; the list stays.
let shows = 0;
let going = null; // the navigation in progress: its address, and a promise
const goTo = (address) => {
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
const reload = async () => {
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
const readHead = async () => {
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
const begin = () => {
  nameZones();
  if (!scrolled()) return;
  markDays();
  for (const entry of unsent()) {
    if (entry.id === talk().id && !document.querySelector(`[data-pending="${entry.once}"]`)) showPending(entry);
  }
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
const markRead = () => {
  const composer = byId("composer");
  if (!composer || document.hidden) return;
  talk().unread = 0;
  posted(composer.dataset.read, fieldsOf({ do: "read" }));
};

// The other viewers of the conversation. Each look counts for half a minute.
const LOOK_MS = 20_000;
const looks = new Map();
const showViewers = () => {
  const line = byId("viewers");
  if (!line) return;
  for (const [id, ends] of looks) if (ends < Date.now()) looks.delete(id);
  const names = [...looks.keys()].map((id) => people[id] ?? "Support");
  line.hidden = !names.length;
  line.textContent = names.length ? `Also looking: ${names.join(", ")}` : "";
};
const look = async () => {
  const composer = byId("composer");
  if (!composer || document.hidden) return;
  const { status, body } = await posted(composer.dataset.look, fieldsOf({}));
  if (status >= 300 || composer !== byId("composer")) return;
  for (const { id } of body) looks.set(id, Date.now() + LOOK_MS * 1.5);
  showViewers();
};
setInterval(() => {
  look();
  showViewers();
}, LOOK_MS);

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
const lookElsewhere = (error, address) => {
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
document.addEventListener("visibilitychange", () => {
  if (document.hidden) return;
  fetchRows();
  count();
  readHead();
  if (Number(byId("talk").dataset.unread)) markRead();
});

// Live updates. An EventSource gives up after an error of the server, so another one is created, which continues at its
// place.
let typists = 0;
let place = "";
const listen = () => {
  const since = place && `&last_event_id=${encodeURIComponent(place)}`;
  const stream = new EventSource(view.live + since, { withCredentials: true });
  const keepNumber = (event) => (place = event.lastEventId || place);
  for (const kind of ["message", "conversation", "note", "reset"]) stream.addEventListener(kind, keepNumber);
  for (const kind of ["notification", "conversation"]) {
    stream.addEventListener(kind, ({ data }) => dispatchEvent(new CustomEvent("live", { detail: { kind, data } })));
  }
  stream.addEventListener("message", (event) => {
    const message = JSON.parse(event.data);
    raise(message);
    if (message.conversation_id !== talk().id || !byId("thread")) return;
    put(message);
    if (message.direction === "in") byId("typing").hidden = true;
  });
  stream.addEventListener("conversation", (event) => {
    const shown = JSON.parse(event.data);
    update(shown);
    count();
    if (shown.id !== talk().id) return;
    if (byId("later") && shown.scheduled !== Number(byId("later").dataset.number)) showLater();
    talk().unread = shown.unread;
    if (shown.unread) markRead();
    talkNow = shown;
    // Free text is allowed again.
    if (byId("f-template") && Date.parse(shown.window_ends_at) > Date.now()) reload();
    else readHead();
  });
  stream.addEventListener("note", (event) => {
    const note = JSON.parse(event.data);
    if (!byId("thread")) return;
    if (note.conversation_id === talk().id) putNote(note);
    else if (note.deleted && byId(note.id)) {
      byId(note.id).remove();
      markDays();
    }
  });
  stream.addEventListener("typing", (event) => {
    const { conversation_id, author: who } = JSON.parse(event.data);
    if (conversation_id !== talk().id || who.id === me || !byId("typing")) return;
    byId("typing").textContent = `${author(who)} is typing …`;
    byId("typing").hidden = false;
    clearTimeout(typists);
    typists = setTimeout(() => byId("typing") && (byId("typing").hidden = true), 6000);
  });
  stream.addEventListener("presence", (event) => {
    const { conversation_id, author: who } = JSON.parse(event.data);
    if (!conversation_id || conversation_id !== talk().id || who.id === me) return;
    looks.set(who.id, Date.now() + LOOK_MS * 1.5);
    showViewers();
  });
  stream.addEventListener("reset", () => (scrolled() ? reload() : location.reload()));
  stream.addEventListener("error", () => {
    offline.suspect();
    if (stream.readyState !== EventSource.CLOSED) return;
    setTimeout(listen, 5000 + Math.random() * 5000);
  });
};
begin();
for (const entry of unsent()) deliver(entry);
listen();
