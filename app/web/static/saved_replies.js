// Suggestions while typing: saved replies after `/`, and members after `@` in a note. The chosen one replaces what was
// typed.

import { combobox } from "./combobox.js";
import { byId, made } from "./dom.js";
import { hear, me, people, refuse } from "./talks.js";

export const offerReplies = (composer) => {
  const box = composer.elements.text;
  const list = byId("replies");
  let token = null; // the typed text, `/` or `@` included, and its position
  let source = null; // the one of `sources` that the suggestions are from
  let asked = 0;
  let isLoading = false;
  let picksFirst = false;

  const close = () => {
    asked += 1;
    isLoading = picksFirst = false;
    token = null;
    list.hidden = true;
    list.replaceChildren();
    for (const name of ["role", "aria-expanded", "aria-controls", "aria-autocomplete", "aria-activedescendant"]) box.removeAttribute(name);
  };
  const options = combobox(box, list, { draw: (option) => source.draw(option), pick: (option) => source.insert(option), wraps: true });
  const open = (found, hasMore) => {
    list.ariaLabel = source.label;
    for (const [name, value] of Object.entries({ role: "combobox", "aria-expanded": "true", "aria-controls": "replies", "aria-autocomplete": "list" })) {
      box.setAttribute(name, value);
    }
    options.show(found);
    hear(`${found.length}${hasMore ? " of more" : ""} ${found.length === 1 ? source.one : source.many}`);
  };

  const ask = async (typed) => {
    const response = await fetch(`${composer.dataset.replies}?q=${encodeURIComponent(typed)}`).catch(() => null);
    return response?.ok ? response.json() : { data: [] };
  };
  const find = (typed) => {
    const names = [...new Set(Object.entries(people).filter(([id]) => id !== me).map(([, name]) => name))].sort();
    const isLike = (name, test) => name.toLowerCase()[test](typed.toLowerCase());
    const data = [...names.filter((each) => isLike(each, "startsWith")), ...names.filter((each) => !isLike(each, "startsWith") && isLike(each, "includes"))];
    // A completely typed name has no suggestions, so that Enter sends the note.
    return { data: data.length === 1 && data[0].toLowerCase() === typed.toLowerCase() ? [] : data };
  };
  const insertName = (name) => {
    const { text, at } = token;
    close();
    box.setRangeText(`@${name} `, at, at + text.length, "end");
    box.dispatchEvent(new Event("input"));
  };

  const look = async () => {
    const before = box.value.slice(0, box.selectionStart);
    source = sources.find((each) => each.isOffered() && each.pattern.test(before));
    if (!source || box.selectionStart !== box.selectionEnd) return close();
    const [, typed] = source.pattern.exec(before);
    const mine = (asked += 1);
    token = { text: typed, at: box.selectionStart - typed.length };
    isLoading = true;
    const found = await source.find(typed.slice(1));
    if (mine !== asked) return;
    isLoading = false;
    if (!found.data.length) return close();
    open(found.data, found.has_more);
    if (picksFirst) source.insert(options.marked());
  };
  const drawReply = (reply) =>
    made("li", {}, made("b", {}, made("bdi", {}, `/${reply.shortcut}`)), " ",
      made("span", { class: "muted", dir: "auto" }, reply.text + (reply.files ? ` (${reply.files} ${reply.files === 1 ? "file" : "files"})` : "")));
  const insert = async ({ id }) => {
    const { text, at } = token;
    close();
    const response = await fetch(`${composer.dataset.replies}/${id}`, { headers: { Accept: "application/json" } }).catch(() => null);
    const reply = (await response?.json().catch(() => null)) ?? {};
    if (!response?.ok) return refuse(reply.errors?.[""] ?? "The saved reply could not be filled in. Try again.");
    const start = box.value.startsWith(text, at) ? at : box.selectionStart;
    box.setRangeText(reply.rendered, start, start === at ? at + text.length : start, "end");
    box.dispatchEvent(new Event("input"));
    for (const file of reply.attachments) {
      if (byId("uploads").querySelector(`[value="${file.id}"]`)) continue;
      const goes = made("input", { type: "checkbox", name: "upload_id", value: file.id, checked: "" });
      byId("uploads").append(made("label", {}, goes, " ", made("bdi", {}, file.name ?? "File")));
    }
    byId("missing").replaceChildren("Nothing is known for ", made("bdi", {}, reply.missing.join(", ")), ". Look at the text before you send it.");
    byId("missing").hidden = !reply.missing.length;
    hear("The saved reply is inserted.");
  };
  const sources = [
    { label: "Saved replies", one: "saved reply", many: "saved replies", isOffered: () => true, pattern: /(?:^|\s)(\/[^\s/]{0,32})$/u,
      find: ask, draw: drawReply, insert },
    { label: "Members", one: "member", many: "members", isOffered: () => composer.elements.kind.value === "note",
      pattern: /(?<![\p{L}\p{N}_.@+-])(@[\p{L}\p{N}_.+-]{0,64})$/u, find, draw: (name) => made("li", {}, made("bdi", {}, `@${name}`)), insert: insertName },
  ];

  box.addEventListener("input", look);
  box.addEventListener("blur", close);
  // Runs before the box's own key handlers.
  composer.addEventListener("keydown", (event) => {
    if (event.target !== box || event.isComposing) return;
    const picks = event.key === "Enter" || event.key === "Tab";
    if (isLoading && picks && !event.shiftKey) picksFirst = true;
    else if (list.hidden) return;
    else if (picks && !event.shiftKey) source.insert(options.marked());
    else if (event.key === "Escape") close();
    else if (!event.key.startsWith("Arrow") || !options.move(event)) return;
    event.preventDefault();
    event.stopPropagation();
  }, true);
};
