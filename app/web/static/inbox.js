// The inbox without reloads. Every page works without it. This script listens to live updates and gives them to the
// parts of the page.

import "./contact_pane.js";
import "./conversation_forms.js";
import { deliver, unsent } from "./composer.js";
import { byId } from "./dom.js";
import { showLater } from "./later.js";
import * as offline from "./offline.js";
import { begin, markRead, noteHead, readHead, reload } from "./panes.js";
import { count, fetchRows, raise, update } from "./rows.js";
import { author, me, scrolled, talk, view } from "./talks.js";
import { markDays, put, putNote } from "./thread.js";
import { see, showViewers } from "./viewers.js";

document.addEventListener("visibilitychange", () => {
  if (document.hidden) return;
  fetchRows();
  count();
  readHead();
  if (Number(byId("talk").dataset.unread)) markRead();
});

// Live updates. An EventSource gives up after an error of the server, so a new one is created, which continues after
// the last update.
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
    noteHead(shown);
    // The page still offers only templates, but free text is allowed again.
    if (byId("f-template") && Date.parse(shown.window_ends_at) > Date.now()) reload();
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
    see(who.id);
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
