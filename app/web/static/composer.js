// The form below a conversation: sending at once, unsent messages, drafts, and files.

import { all, byId, made, textButton } from "./dom.js";
import { PICTURES, size, textOf } from "./messages.js";
import * as offline from "./offline.js";
import { offerReplies } from "./saved_replies.js";
import { author, cut, fieldsOf, me, people, posted, refuse, scrolled, talk, tell } from "./talks.js";
import { markDays, put, putNote, toEnd } from "./thread.js";

// A sent message appears in the thread at once, and returns to the box if it is refused. Forms are kept in the browser
// until the server has answered, so that neither a network failure nor a closed window loses one; its key makes each
// count once.
const outbox = () => `outbox ${me}`;
export const unsent = () => JSON.parse(localStorage.getItem(outbox()) ?? "[]");
const store = (entries) => localStorage.setItem(outbox(), JSON.stringify(entries));
const sending = []; // entries of this page without the server's response
const fieldOf = (entry, name) => entry.fields.find((each) => each[0] === name)?.[1] ?? "";
const pendingOf = (entry) =>
  made("li", { class: `message ${fieldOf(entry, "kind") === "note" ? "note" : "out"}`, "data-status": "sending", "data-pending": entry.once },
    made("p", { class: "by" }, made("bdi", { class: "author" }, people[me] ?? "Support")),
    made("div", { class: "bubble", dir: "auto" }, textOf(fieldOf(entry, "text") || "Files")),
    made("p", { class: "status" }, "Sending"));
export const showUnsent = () => {
  for (const entry of unsent()) {
    if (entry.id === talk().id && !document.querySelector(`[data-pending="${entry.once}"]`)) showPending(entry);
  }
};
const showPending = (entry) => {
  byId("thread").querySelector(".nothing")?.remove();
  byId("thread").append(pendingOf(entry));
  markDays();
  toEnd();
};
const removePending = (entry) => {
  document.querySelector(`[data-pending="${entry.once}"]`)?.remove();
  markDays();
};
const send = (form, button) => {
  const { text, once } = form.elements;
  if (!form.dataset.began) noteSeen(form);
  const data = new FormData(form, button);
  const fields = [...data].filter(([name]) => !["csrf_token", "files"].includes(name));
  const files = [...form.elements.files.files];
  const entry = { id: talk().id, address: form.action, once: once.value, fields };
  if (!files.length) store([...unsent(), entry]);
  showPending(entry);
  empty(form);
  text.focus();
  deliver({ ...entry, files, uploads: [...byId("uploads").children] });
  byId("uploads").replaceChildren();
};
// Empties the form after its text was sent.
const empty = (form) => {
  const { text, files, once, later } = form.elements;
  clearTimeout(typing);
  text.value = files.value = later.value = "";
  nameFiles(form);
  once.value = crypto.randomUUID();
  delete form.dataset.began;
  form.querySelector(".later-menu").open = false;
  for (const id of ["refused", "missing"]) byId(id).hidden = true;
  forget(talk().id);
  isKept = true;
  mark(talk().id, false);
  nameSend(form);
};
// Sends entries one after the other, in the order in which they were written.
let delivered = Promise.resolve();
export const deliver = (entry) => {
  sending.push(entry);
  delivered = delivered.then(() => settle(entry));
};
const settle = async (entry) => {
  while (sending.includes(entry)) {
    const answer = await posted(entry.address, dataOf(entry));
    if (answer.body.newer?.length && (await isSentAnyway(entry, answer.body.newer))) continue;
    if (!sending.includes(entry)) return; // the text has returned to the box
    done(entry);
    const isHere = talk().id === entry.id;
    if (answer.status >= 300) giveBack([entry], answer.body);
    else if (isHere && answer.body.created_at) (fieldOf(entry, "kind") === "note" ? putNote : put)(answer.body);
    if (answer.body.warning) tell(answer.body.warning, "warn");
    removePending(entry);
  }
};
const done = (entry) => {
  sending.splice(sending.indexOf(entry), 1);
  store(unsent().filter((each) => each.once !== entry.once));
};
const dataOf = (entry) => {
  const data = new FormData();
  data.set("csrf_token", document.querySelector("[name=csrf_token]").value);
  for (const [name, value] of entry.fields) data.append(name, value);
  for (const file of entry.files ?? []) data.append("files", file);
  return data;
};
const giveBack = (entries, problem) => {
  const [{ id }] = entries;
  const box = talk().id === id && byId("f-text");
  const texts = entries.map((each) => fieldOf(each, "text"));
  if (!box) {
    const there = draftHere(id)?.text;
    keep(id, { text: [...texts, there].filter(Boolean).join("\n"), kind: "reply", key: crypto.randomUUID() });
    mark(id, true);
    return;
  }
  const form = byId("composer");
  box.value = [...texts, box.value].filter(Boolean).join("\n");
  form.elements.kind.value = fieldOf(entries[0], "kind");
  form.elements.later.value ||= fieldOf(entries[0], "later");
  for (const entry of entries) {
    attach(form, entry.files ?? []);
    byId("uploads").append(...(entry.uploads ?? []));
  }
  noteSeen(form);
  nameSend(form);
  keepSoon(form);
  refuse(Object.values(problem.errors ?? { "": problem.detail ?? "It could not be sent." }).join(" "));
};
// The messages that the reader had seen when they began to write. If somebody else has answered since, the server does
// not send but returns the answers, and the reader decides.
const noteSeen = (form) => {
  const shown = all("#thread > .message:not([data-pending], .note)");
  form.elements.seen.value = shown.map((each) => each.id).slice(-20).join(" ");
  form.dataset.began = "true";
};
let decide = null;
const isSentAnyway = (entry, replies) =>
  new Promise((decided) => {
    const theirs = () => sending.filter((each) => each.id === entry.id);
    const takeBack = () => {
      const those = theirs();
      those.forEach(done);
      those.forEach(removePending);
      giveBack(those, { errors: {} });
      decided(false);
    };
    if (talk().id !== entry.id || !byId("newer")) return takeBack();
    for (const each of replies) put(each);
    const pending = document.querySelector(`[data-pending="${entry.once}"] .status`);
    if (pending) pending.textContent = "Not sent yet";
    const [latest] = replies.slice(-1);
    const button = (said, isAnyway) => textButton(said, () => decide(isAnyway));
    byId("newer").replaceChildren(
      made("p", {}, made("bdi", {}, author(latest.author)), " has answered since you began to write: ", made("bdi", {}, cut(latest.text ?? "a file", 200))),
      made("p", { class: "actions" }, button("Send anyway", true), " ", button("Edit", false)));
    byId("newer").hidden = false;
    decide = (isAnyway) => {
      decide = null;
      if (byId("newer")) byId("newer").hidden = true;
      if (!isAnyway) {
        takeBack();
        byId("f-text")?.focus();
        return;
      }
      for (const each of theirs()) seeToo(each, replies);
      if (pending) pending.textContent = "Sending";
      decided(true);
    };
  });
const seeToo = (entry, replies) => {
  const ids = replies.map((each) => each.id).join(" ");
  for (const each of entry.fields) if (each[0] === "seen") each[1] = `${each[1]} ${ids}`.trim().split(" ").slice(-20).join(" ");
  const { files, uploads, ...kept } = entry;
  store(unsent().map((each) => (each.once === entry.once ? kept : each)));
};

// Drafts: stored on the server about a second after the last key, for other devices, and in the browser until the
// server confirms. `key` is that of the form, by which the draft of a sent message is recognized.
const draftOf = (id) => `draft ${me} ${id}`;
const draftHere = (id) => JSON.parse(localStorage.getItem(draftOf(id)));
const keep = (id, draft) => localStorage.setItem(draftOf(id), JSON.stringify(draft));
const forget = (id) => localStorage.removeItem(draftOf(id));
const mark = (id, hasDraft) => {
  const gist = byId(`row-${id}`)?.querySelector(".gist");
  const there = gist?.parentElement.querySelector(".draft");
  if (hasDraft && gist && !there) gist.before(made("span", { class: "draft" }, "Draft"));
  else if (!hasDraft) there?.remove();
};
let typing = 0;
let isKept = true; // whether the server has the text of the box
const keepSoon = (form) => {
  const { text, kind, once } = form.elements;
  keep(talk().id, { text: text.value, kind: kind.value, key: once.value });
  isKept = false;
  clearTimeout(typing);
  typing = setTimeout(keepNow, 1000);
};
export const keepNow = async () => {
  clearTimeout(typing);
  const form = byId("composer");
  const { id } = talk();
  const draft = form && draftHere(id);
  if (isKept || !draft) return;
  isKept = true;
  const { text, once } = form.elements;
  try {
    const response = await fetch(form.dataset.draft, { method: "POST", body: fieldsOf(draft), keepalive: true });
    if (!response.ok) throw new Error(`${response.status}`);
    const answer = await response.json();
    if (localStorage.getItem(draftOf(id)) === JSON.stringify(draft)) forget(id);
    if (once.value !== draft.key) return; // the draft was sent meanwhile
    if (answer.is_kept) mark(id, Boolean(draft.text));
    else if (form.isConnected && text.value) {
      once.value = crypto.randomUUID(); // the text in the box is another message now
      refuse("What you began here was sent from another window. Look at it before you send more.");
    }
  } catch {
    // The draft stays here. It is saved with the next key, when the page is hidden, or when the server is back.
    isKept = false;
    offline.suspect();
  }
};
const showDraft = (form) => {
  const { text, kind, once } = form.elements;
  const isSent = (key) => form.dataset.sent.split(" ").includes(key) || unsent().some((each) => each.once === key);
  if (isSent(once.value)) {
    text.value = "";
    once.value = crypto.randomUUID();
  }
  const here = draftHere(talk().id);
  isKept = true;
  if (!here || isSent(here.key)) {
    forget(talk().id);
  } else {
    text.value = here.key === once.value ? here.text : [text.value, here.text].filter(Boolean).join("\n");
    kind.value = here.kind;
    once.value = here.key;
    keepSoon(form);
  }
  if (text.value) form.dataset.began = "true"; // the draft that the page shows
  text.setSelectionRange(text.value.length, text.value.length); // put the caret at the end
};
addEventListener("pagehide", keepNow);
document.addEventListener("visibilitychange", () => document.hidden && keepNow());

// Returns the form's state, for `restore` after the panes have been replaced.
export const kept = () => {
  decide?.(false);
  const form = byId("composer");
  if (!form) return null;
  const { text, kind, once, seen, later, files } = form.elements;
  return { id: talk().id, values: { text: text.value, kind: kind.value, once: once.value, seen: seen.value, later: later.value },
    files: files.files, began: form.dataset.began, uploads: [...byId("uploads").children] };
};
export const restore = (state) => {
  const form = byId("composer");
  if (!form || state?.id !== talk().id || !(state.values.text || state.files.length || state.uploads.length)) return;
  for (const [name, value] of Object.entries(state.values)) form.elements[name].value = value;
  form.elements.files.files = state.files;
  byId("uploads").replaceChildren(...state.uploads);
  if (state.began) form.dataset.began = state.began;
  nameFiles(form);
  nameSend(form);
};

// Prepares the form of a conversation that was just shown.
export const beginComposer = (composer) => {
  const box = composer.elements.text;
  decide?.(false);
  showDraft(composer);
  let told = 0;
  box.addEventListener("input", () => {
    if (!box.value) delete composer.dataset.began;
    else if (!composer.dataset.began) noteSeen(composer);
    keepSoon(composer);
    if (composer.elements.kind.value !== "reply" || Date.now() - told < 4000) return;
    told = Date.now();
    fetch(composer.dataset.typing, { method: "POST", body: fieldsOf({}) }).catch(() => {});
  });
  box.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      composer.requestSubmit();
    } else if (event.key === "Escape") {
      scrolled().focus();
    }
  });
  box.addEventListener("paste", (event) => event.clipboardData.files.length && attach(composer, event.clipboardData.files));
  composer.addEventListener("dragover", (event) => {
    event.preventDefault();
    composer.classList.add("drop");
  });
  composer.addEventListener("dragleave", () => composer.classList.remove("drop"));
  composer.addEventListener("drop", (event) => {
    event.preventDefault();
    composer.classList.remove("drop");
    attach(composer, event.dataTransfer.files);
  });
  nameFiles(composer);
  composer.elements.files.addEventListener("change", () => attach(composer, composer.elements.files.files));
  composer.elements.later.addEventListener("input", () => nameSend(composer));
  byId("uploads").addEventListener("change", (event) => event.target.closest("label").remove());
  for (const kind of composer.elements.kind) {
    kind.addEventListener("change", () => {
      box.placeholder = kind.value === "note" ? "A note, which the contact never sees. @name tells somebody." : "Your answer";
      keepSoon(composer);
    });
    // Also when its key, `r` or `n`, is pressed. Immediately, or the next letters would count as keys as well.
    kind.addEventListener("click", () => box.focus());
  }
  offerReplies(composer);
};
let attached = []; // the files chosen so far
const attach = (composer, files) => {
  const { mostFiles, mostBytes } = composer.dataset;
  const chosen = new DataTransfer();
  let [bytes, refusal] = [0, ""];
  for (const file of [...attached, ...files]) {
    const number = chosen.files.length + byId("uploads").children.length + 1;
    if (!file.size) refusal = `${file.name} is empty.`;
    else if (bytes + file.size > mostBytes) refusal = `${file.name} is too large: the files of a message have at most ${mostBytes / 2 ** 20} MiB together.`;
    else if (number > mostFiles) refusal = `On this channel a message has at most ${mostFiles === "1" ? "one file" : `${mostFiles} files`}.`;
    else {
      chosen.items.add(file);
      bytes += file.size;
    }
  }
  composer.elements.files.files = chosen.files;
  nameFiles(composer);
  refuse(refusal);
};
const nameFiles = (composer) => {
  const { files } = composer.elements.files;
  attached = [...files];
  byId("chosen").replaceChildren(...[...files].map((file) => chosenOf(composer, file)));
};
const chosenOf = (composer, file) => {
  const remove = made("button", { type: "button", class: "small plain", "aria-label": `Remove ${file.name}` }, "×");
  remove.addEventListener("click", () => {
    const left = new DataTransfer();
    for (const each of composer.elements.files.files) if (each !== file) left.items.add(each);
    composer.elements.files.files = left.files;
    nameFiles(composer);
    refuse("");
    composer.elements.text.focus();
  });
  const item = made("li", {}, made("bdi", {}, file.name), " ", made("span", { class: "muted" }, size(file.size)), " ", remove);
  if (PICTURES.includes(file.type)) {
    const reader = new FileReader();
    reader.addEventListener("load", () => item.prepend(made("img", { src: reader.result, alt: "" })));
    reader.readAsDataURL(file);
  }
  return item;
};
// Names the button. A typed time applies, whichever button is clicked.
const nameSend = (composer) => {
  composer.querySelector("button.main").textContent = composer.elements.later.value.trim() ? "Send then" : "Send";
};
addEventListener("submit", (event) => {
  const composer = event.target;
  if (composer.id !== "composer") return;
  event.preventDefault();
  const { text, files, template, later } = composer.elements;
  if (event.submitter?.id === "send-later" && !later.value.trim()) return later.focus();
  if (text.value.trim() || files.files.length || template?.value.trim() || byId("uploads").children.length) send(composer, event.submitter);
});
