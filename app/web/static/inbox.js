// The inbox without reloads: live updates, older messages, the next conversation; composer.js sends. Every page works
// without it; what it adds to the page looks as the templates in templates/inbox make it.
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
const page = async (address) => {
  const response = await fetch(address, { headers: { Accept: "text/html" } });
  if (!response.ok || response.redirected) throw new Error(`${response.status}`);
  return new DOMParser().parseFromString(await response.text(), "text/html");
};
const hear = (text) => (byId("heard").textContent = text);

// Messages, as the macro `message` makes them.
const STATUSES = {
  queued: "Queued", sending: "Sending", scheduled: "Scheduled", sent: "Sent", delivered: "Delivered", read: "Read",
  failed: "Not sent", unknown: "Perhaps sent",
};
const PICTURES = ["image/png", "image/jpeg", "image/gif", "image/webp"];
const talk = () => byId("talk").dataset;
const size = (bytes) => (bytes < 1000 ? `${bytes} B` : bytes < 1e6 ? `${Math.round(bytes / 1000)} kB` : `${(bytes / 1e6).toFixed(1)} MB`);
const clock = (at) => made("time", { datetime: at, title: at, "data-local": "" }, at);
const author = (of) =>
  ({ contact: talk().name, member: people[of.id] ?? "Support", automation: "Automation", provider: "In the provider's app" })[of.type] ?? "API";
const attachment = (file) => {
  const name = file.name ?? file.content_type;
  if (file.bytes === null) return made("span", { class: "file muted" }, `${name}, on its way`);
  const link = { href: file.address, target: "_blank", rel: "noopener" };
  if (PICTURES.includes(file.content_type)) {
    return made("a", { class: "picture", ...link }, made("img", { src: file.address, alt: file.name ?? "Picture" }));
  }
  return made("a", { class: "file", ...link }, `${name} `, made("span", { class: "muted" }, size(file.bytes)));
};
const again = (message) => {
  const form = made("form", { method: "post", class: "inline again", "data-once": "",
    action: `${inbox.dataset.home}/${message.conversation_id}/messages/${message.id}/resend` });
  for (const [name, value] of fieldsOf({})) form.append(made("input", { type: "hidden", name, value }));
  form.append(made("button", { class: "small" }, "Send again"));
  if (message.status === "unknown") form.append(made("span", { class: "muted" }, " The contact may then get it twice."));
  return form;
};
const drawn = (message) => {
  const said = [STATUSES[message.status] ?? message.status, message.failure?.detail].filter(Boolean).join(": ");
  const bubble = made("div", { class: "bubble", dir: "auto" },
    message.text ? made("p", { class: "text" }, message.text) : null, ...message.attachments.map(attachment));
  if (message.buttons?.length) {
    bubble.append(made("p", { class: "offered" }, ...message.buttons.map((each) => made("span", {}, each.label))));
  }
  const isOut = message.direction === "out";
  const item = made("li", { class: `message ${message.direction}`, id: message.id, "data-status": message.status },
    made("p", { class: "by" }, made("bdi", { class: "author" }, author(message.author)), " ",
      clock(message.provider_time ?? message.created_at)),
    bubble, isOut ? made("p", { class: "status" }, said) : null,
    isOut && byId("composer") && ["failed", "unknown"].includes(message.status) ? again(message) : null);
  localize(item);
  return item;
};

// The thread. What one reads does not move: only who is at its end follows what comes.
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
const put = (message) => {
  if (isForLater(message)) return;
  const item = drawn(message);
  const there = byId(message.id);
  const follows = isAtEnd();
  if (there) {
    there.replaceWith(item);
  } else {
    const at = message.provider_time ?? message.created_at;
    const times = all("li time:first-of-type", byId("thread"));
    const later = times.find((each) => Date.parse(each.dateTime) > Date.parse(at));
    // It lies among the older messages that are not here, and comes with them.
    if (byId("older") && later && later === times[0]) return;
    byId("thread").querySelector(".nothing")?.remove();
    item.classList.add("new");
    byId("thread").insertBefore(item, later?.closest("li") ?? null);
    if (message.direction === "in") hear(`${talk().name}: ${message.text ?? "a file"}`);
    if (!follows) offerNewest();
  }
  if (follows) toEnd();
};
const older = async () => {
  const link = byId("older");
  if (!link || link.ariaBusy) return;
  link.ariaBusy = "true";
  try {
    const earlier = await page(link.href);
    const height = scrolled().scrollHeight;
    const items = [...earlier.getElementById("thread").children].filter((each) => !byId(each.id));
    localize(earlier);
    byId("thread").prepend(...items);
    const next = earlier.getElementById("older");
    if (next) link.href = next.href;
    else link.parentElement.remove();
    scrolled().scrollTop += scrolled().scrollHeight - height;
  } catch {
    // The link stays: a click tries again.
  }
  link.ariaBusy = null;
};

// Asked until there is an answer.
const posted = async (address, data) => {
  for (let pause = 500; ; pause = Math.min(pause * 2, 15_000)) {
    try {
      const response = await fetch(address, { method: "POST", body: data, headers: { Accept: "application/json" } });
      if (response.redirected) return { status: 401, body: { detail: "You are not signed in any more. Sign in in another window, then send it again." } };
      if (response.status < 500) {
        return { status: response.status, body: response.status === 204 ? {} : await response.json().catch(() => ({})) };
      }
    } catch {
      // The network is away.
    }
    await new Promise((done) => setTimeout(done, pause));
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
const isFirstPage = !new URLSearchParams(location.search).has("after");
const wanted = new Set();
let isFetching = false;
// Rows are fetched one after the other, so that a flood asks the server no faster than it answers.
const fetchRows = async () => {
  if (isFetching) return;
  isFetching = true;
  for (const id of wanted) {
    wanted.delete(id);
    try {
      const row = (await page(`${view.home}/${id}/row${location.search}`)).querySelector("li");
      localize(row);
      if (byId("talk").dataset.id === id) row.querySelector("a").setAttribute("aria-current", "true");
      const there = byId(`row-${id}`);
      if (there) there.replaceWith(row);
      else if (view.view === "waiting" || view.view === "snoozed") rowsList.append(row);
      else rowsList.prepend(row);
      byId("no-rows").hidden = true;
    } catch {
      // It is gone, or the server is away: the stream's end reads everything again.
    }
  }
  isFetching = false;
};
const update = (shown) => {
  if (view.view === "search") return; // It shows what was found.
  const row = byId(`row-${shown.id}`);
  if (belongs(shown)) {
    if (row || isFirstPage) wanted.add(shown.id);
    if (!document.hidden) fetchRows();
  } else if (row) {
    if (talk().id === shown.id) row.classList.add("left");
    else row.remove();
    byId("no-rows").hidden = rowsList.children.length > 0;
  }
};
const raise = (message) => {
  if (message.status === "scheduled") return;
  const row = byId(`row-${message.conversation_id}`);
  if (!row?.querySelector(".gist")) return;
  row.querySelector(".gist").textContent = (message.direction === "out" ? "↩ " : "") + (message.text ?? "…").slice(0, 140);
  const time = clock(message.created_at);
  time.dataset.local = "short";
  row.querySelector("time").replaceWith(time);
  localize(row);
  // Not under somebody's pointer or focus.
  const isUsed = rowsList.matches(":hover") || rowsList.contains(document.activeElement);
  if (["mine", "unassigned", "all"].includes(view.view) && isFirstPage && !isUsed) rowsList.prepend(row);
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
const show = async (address, push = true) => {
  if (push) await keepNow();
  const fresh = await page(address);
  if (push) history.pushState(null, "", address);
  document.title = fresh.title;
  const panes = ["talk", "side"].map((id) => fresh.getElementById(id)).filter(Boolean);
  byId("side")?.remove();
  byId("talk").replaceWith(...panes);
  inbox.className = fresh.getElementById("inbox").className;
  for (const pane of panes) localize(pane);
  for (const link of all("#rows a[aria-current]")) link.removeAttribute("aria-current");
  for (const row of all("#rows .left")) row.remove();
  byId(`row-${talk().id}`)?.querySelector("a").setAttribute("aria-current", "true");
  begin();
};
const reload = async () => {
  const written = kept();
  const at = document.activeElement?.id;
  await show(location.href, false);
  restore(written);
  if (at) byId(at)?.focus();
};
const begin = () => {
  nameZones();
  if (!scrolled()) return;
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

// Who else looks at the conversation. Each look counts for half a minute.
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
  else show(link.href).catch(() => (location.href = link.href));
});
addEventListener("popstate", () => show(location.href, false).catch(() => location.reload()));
document.addEventListener("visibilitychange", () => {
  if (document.hidden) return;
  fetchRows();
  count();
  if (Number(byId("talk").dataset.unread)) markRead();
});

// Live updates. An EventSource gives up at an error of the server, so another is made then, which goes on at its place.
let typists = 0;
let place = "";
const listen = () => {
  const since = place && `&last_event_id=${encodeURIComponent(place)}`;
  const stream = new EventSource(view.live + since, { withCredentials: true });
  const keepPlace = (event) => (place = event.lastEventId || place);
  for (const kind of ["message", "conversation", "reset"]) stream.addEventListener(kind, keepPlace);
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
    if (stream.readyState !== EventSource.CLOSED) return;
    setTimeout(listen, 5000 + Math.random() * 5000);
  });
};
begin();
for (const entry of unsent()) deliver(entry);
listen();
