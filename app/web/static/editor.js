// The editor of automations without reloads: links and forms replace the picture and the panel in place, forms of steps
// save themselves, and others' changes appear. Every page works without it.

import { offerChoices } from "./choosers.js";
import { all, byId, made, parsed } from "./dom.js";
import * as keys from "./keys.js";
import * as offline from "./offline.js";
import { offerNames } from "./names.js";
import { localize } from "./times.js";

const editor = () => byId("editor");
const panel = () => byId("panel");
const canvas = () => document.querySelector(".canvas");
// The first finds the step whose form is open; the second focuses a step in the picture.
const openStep = () => panel().querySelector("[name=step]")?.value;
const focusStep = (step) => document.querySelector(`[id="step-${CSS.escape(step ?? "")}"] a`)?.focus({ preventScroll: true });
const SAVE_AFTER = 1_200;
const LOOK_EVERY = 4_000;
const isOurs = (address) => new URL(address, location.href).pathname.startsWith(new URL(editor().dataset.home, location.href).pathname);
let isDirty = false;
let isSaving = false;
let saving = 0;
let here = location.href;
let running = Promise.resolve();

const mark = () => {
  for (const each of all(".step.open")) each.classList.remove("open");
  byId(`step-${openStep() ?? ""}`)?.classList.add("open");
};
const swap = (id, fresh) => {
  const now = byId(id);
  const next = fresh.getElementById(id);
  if (!now || !next || now.outerHTML === next.outerHTML) return;
  localize(next);
  now.replaceWith(next);
};
// Replaces everything except the panel: the picture keeps its scroll position.
const redraw = (fresh) => {
  const [left, top, focused] = [canvas()?.scrollLeft, canvas()?.scrollTop, document.activeElement];
  const place = focused?.closest("#picture, #editor-head") && (focused.getAttribute("href") ?? focused.dataset.do);
  for (const id of ["editor-head", "presence", "problems", "picture"]) swap(id, fresh);
  editor().dataset.seen = fresh.getElementById("editor").dataset.seen;
  canvas()?.scrollTo(left, top);
  for (const each of all(".tools .zoom")) each.hidden = false;
  dispatchEvent(new CustomEvent("refreshed", { detail: editor() }));
  if (place) all("#picture a, #editor-head button").find((each) => [each.getAttribute("href"), each.dataset.do].includes(place))?.focus({ preventScroll: true });
  mark();
};
const open = (fresh, focus) => {
  const state = [...panel().querySelectorAll("details[id]")].filter((each) => each.open).map((each) => each.id);
  const isSame = openStep() === fresh.querySelector("#panel [name=step]")?.value;
  swap("panel", fresh);
  editor().className = fresh.getElementById("editor").className;
  document.title = fresh.title;
  if (isSame) for (const id of state) if (byId(id)) byId(id).open = true;
  isDirty = false;
  bind();
  mark();
  tell(fresh);
  focus?.();
  const chat = byId("chat");
  if (chat) chat.scrollTop = chat.scrollHeight;
};
const tell = (fresh) => {
  const said = all("main > .flash", fresh).map((each) => each.textContent.trim()).join(" ");
  for (const each of all("main > .flash")) each.remove();
  for (const each of all("main > .flash", fresh).reverse()) byId("main").prepend(each);
  byId("said").textContent = said;
};
const first = () =>
  (panel().querySelector("[aria-invalid]") ?? panel().querySelector("[data-first]")
    ?? panel().querySelector("form :is(input:not([type=hidden]), textarea, select), a, button:not(.unseen)"))?.focus();

const ask = async (address, options = {}) => {
  const response = await fetch(address, { headers: { Accept: "text/html" }, ...options });
  if (response.status >= 500) throw new Error(`${response.status}`);
  const fresh = parsed(await response.text());
  if (!fresh.getElementById("editor")) {
    location.assign(response.url);
    throw new Error("elsewhere");
  }
  return { fresh, url: response.url, isOk: response.ok && !fresh.querySelector("main > .flash.error") };
};
// Saves what was typed once the server is back.
addEventListener("back", () => flush());
// Shows the text at the top of the page until something is saved.
const say = (text) => {
  for (const each of all("main > .unsaved")) each.remove();
  byId("main").prepend(made("p", { class: "flash error unsaved", role: "alert" }, text));
  return false;
};
const sorry = () => say("The server is away. What is in the form is not saved yet. Try again in a moment.");

const go = (url) => {
  history.pushState(null, "", url);
  here = location.href;
};
const follow = async (address, { isBack = false, focus = first } = {}) => {
  if (!(await settle())) return isBack && go(here);
  try {
    const { fresh, url } = await ask(address);
    if (!isBack) go(url);
    here = location.href;
    redraw(fresh);
    open(fresh, focus);
  } catch (error) {
    if (error instanceof TypeError) offline.suspect();
    else if (error.message !== "elsewhere") location.assign(address);
  }
};
const submit = async (form, button) => {
  const body = new FormData(form);
  if (button?.name) body.set(button.name, button.value);
  const doing = button?.value ?? "";
  try {
    const { fresh, url } = await ask(form.action, { method: "POST", body: new URLSearchParams(body) });
    if (new URL(url).pathname !== new URL(form.action, location.href).pathname) go(url);
    const wasDirty = isDirty;
    const [, name, place] = doing.match(/^(?:add|remove|up|down):([a-z_]+)(?::(\d+))?$/) ?? [];
    const step = body.get("step");
    redraw(fresh);
    open(fresh, () => {
      if (name) return focusRow(doing.split(":")[0], name, Number(place));
      if (button?.dataset.do) return all(`#editor-head [data-do="${button.dataset.do}"]`)[0]?.focus();
      if (doing === "preview") return panel().querySelector("[value=preview]")?.focus();
      if (panel().dataset.panel) return first();
      focusStep(step);
    });
    // These buttons show the typed values, and save nothing.
    if (name || doing === "preview") {
      isDirty = wasDirty || Boolean(name);
      saving = setTimeout(flush, SAVE_AFTER);
    }
  } catch (error) {
    if (error.message === "elsewhere") return;
    offline.suspect();
    sorry();
  }
};
const focusRow = (doing, name, place) => {
  const lines = all(`[id="e-${name}"] .line`);
  const at = doing === "add" ? lines.length - 1 : doing === "up" ? place - 1 : doing === "down" ? place + 1 : Math.min(place, lines.length - 1);
  const target = lines[at];
  if (doing === "add" || !target) return (target?.querySelector("input:not([type=hidden]), textarea") ?? document.querySelector(`[value="add:${name}"]`))?.focus();
  const button = target.querySelector(`[value^="${doing}:"]`);
  (button && !button.disabled ? button : target.querySelector("button:not(:disabled)"))?.focus();
};

const entries = (form) => all(":is(input:not([type=hidden]), textarea, select)[name]", form);

// Saves what was typed. Returns false if that fails. The form of a step is saved while typing; other forms, and a new
// name of the step, only when the reader leaves.
const save = async ({ isLeaving = false } = {}) => {
  const form = byId("step-form");
  if (!isDirty || !form) return true;
  const { step, new_id } = form.elements;
  const isTyping = Boolean(step) && !(isLeaving && new_id.value !== step.value);
  if (!isLeaving && !step) return true;
  // After a conflict, nothing is saved until the reader saves by hand.
  if (!form.checkValidity() || panel().querySelector(".flash.warn:not([data-kept])")) return false;
  isDirty = false;
  isSaving = true;
  const body = new FormData(form);
  body.set("do", isTyping ? "autosave" : "save");
  try {
    const { fresh, isOk } = await ask(form.action, { method: "POST", body: new URLSearchParams(body) });
    if (isOk) for (const each of all("main > .unsaved")) each.remove();
    const next = fresh.getElementById("step-form");
    if (!form.isConnected) return isOk;
    if (!isTyping) {
      redraw(fresh);
      if (isOk || next) open(fresh, isOk ? undefined : first);
      else tell(fresh);
      isDirty = !isOk;
      return isOk;
    }
    if (!next) {
      isDirty = true;
      tell(fresh);
      return false;
    }
    if (fresh.querySelector("#panel .flash.warn")) {
      const typed = entries(form);
      open(fresh);
      // Keeps the values typed since.
      if (typed.length === entries(byId("step-form")).length) {
        entries(byId("step-form")).forEach((each, at) => (each.value = typed[at].value));
        offerChoices(panel());
      }
      isDirty = true;
      return false;
    }
    for (const name of ["base", "step", "once"]) form.elements[name].value = next.elements[name].value;
    // An arm's steps follow it under its new name.
    all("[name='arms.was']", form).forEach((each, at) => (each.value = all("[name='arms.name']", form)[at].value || each.value));
    redraw(fresh);
    notes(fresh);
    isDirty ||= !isOk;
    return isOk;
  } catch (error) {
    isDirty = true;
    if (error.message === "elsewhere") return false;
    offline.suspect();
    return sorry();
  } finally {
    isSaving = false;
  }
};
// Shows the current faults of fields without touching their values.
const notes = (fresh) => {
  for (const field of all(".field, fieldset.rows", panel())) {
    const id = field.querySelector("[id^='e-']")?.id ?? field.id;
    const next = id && fresh.getElementById(id)?.closest(".field, fieldset.rows");
    if (!next) continue;
    const [old, now] = [field.querySelector(":scope > .hint"), next.querySelector(":scope > .hint")];
    if (old && now) old.replaceWith(now.cloneNode(true));
    else if (now) field.append(now.cloneNode(true));
    else old?.remove();
    const [input, other] = [byId(id), fresh.getElementById(id)];
    if (other.hasAttribute("aria-invalid")) input.setAttribute("aria-invalid", "true");
    else input.removeAttribute("aria-invalid");
  }
  offerChoices(panel());
};
// One after the other: a save that overtakes another would be refused, because it is based on an old version.
const inTurn = (act) => (running = running.then(act).catch(sorry));
const flush = () => {
  clearTimeout(saving);
  return inTurn(save);
};

// Saves before the reader leaves. If that fails, leaves only if the reader confirms.
const settle = async () => {
  clearTimeout(saving);
  if (await inTurn(() => save({ isLeaving: true }))) return true;
  if (!confirm("What is in the form cannot be saved yet. Leave it, and lose what you typed?")) {
    byId("step-form")?.reportValidity();
    return false;
  }
  isDirty = false;
  return true;
};
const publish = async () => {
  clearTimeout(saving);
  // Look up the button now: the head may have been redrawn by then.
  if (await inTurn(() => save({ isLeaving: true }))) return document.querySelector("#editor-head [data-plain]").form.submit();
  say("It is not published: what is in the form cannot be saved yet. Mend it, or close the form.");
  byId("step-form")?.reportValidity();
};

addEventListener("beforeunload", (event) => (isDirty || isSaving) && event.preventDefault());
addEventListener("visibilitychange", () => document.hidden && flush());

const bind = () => {
  offerChoices(panel());
  const form = byId("step-form");
  const into = () => form.querySelector("[data-template].last") ?? form.querySelector("[data-template]");
  if (form?.querySelector("[data-template]")) {
    for (const each of all("[data-insert]", form)) each.hidden = false;
    for (const names of all("#variables", form)) offerNames(names, into);
  }
};
document.addEventListener("focusin", (event) => {
  if (!event.target.matches?.("#step-form [data-template]")) return;
  for (const each of all(".last", panel())) each.classList.remove("last");
  event.target.classList.add("last");
});
document.addEventListener("input", (event) => {
  const form = event.target.closest("#step-form");
  if (!form) return;
  isDirty = true;
  const sum = form.querySelector("[data-sum] output");
  if (sum) {
    const total = all("[name='arms.percent']", form).reduce((so_far, each) => so_far + (Number(each.value.replace(",", ".")) || 0), 0);
    sum.textContent = String(Math.round(total * 1e6) / 1e6);
    sum.parentElement.classList.toggle("fault", sum.textContent !== "100");
  }
  clearTimeout(saving);
  saving = setTimeout(flush, SAVE_AFTER);
});

document.addEventListener("click", (event) => {
  // A click anywhere on a box counts as a click on its heading.
  const box = getSelection().isCollapsed && event.target.closest("#editor .step");
  const link = event.target.closest("a[href]") ?? (box || null)?.querySelector(".title a[href]");
  if (!link || event.defaultPrevented || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
  if (new URL(link.href).pathname === location.pathname && link.hash && new URL(link.href).search === location.search) return;
  const isInside = link.closest("#editor") && isOurs(link.href);
  if (!isInside && (link.target || link.hasAttribute("download") || !(isDirty || isSaving))) return;
  event.preventDefault();
  if (link.hasAttribute("data-discard")) isDirty = false;
  if (!isInside) return settle().then((isSettled) => isSettled && location.assign(link.href));
  const step = openStep();
  follow(link.href, { focus: link.hasAttribute("data-close") ? () => focusStep(step) : first });
});
document.addEventListener("submit", (event) => {
  const form = event.target;
  const button = event.submitter;
  const isPlain = button?.hasAttribute("data-plain");
  if (!form.closest("#editor") || !(isPlain || isOurs(form.action))) return;
  event.preventDefault();
  if (isPlain) return publish();
  clearTimeout(saving);
  // Submit or save first, so that another button does not lose what is typed in the step's form.
  if (form.id === "step-form") inTurn(() => submit(form, button));
  else settle().then((isSettled) => {
    const now = (button?.dataset.do && document.querySelector(`#editor-head [data-do="${button.dataset.do}"]`)) || button;
    return isSettled && inTurn(() => submit(now === button ? form : now.form, now));
  });
}, true);
addEventListener("popstate", () => follow(location.href, { isBack: true, focus: null }));

for (const [doing, ...names] of [["undo", "Ctrl+z"], ["redo", "Ctrl+Shift+z", "Ctrl+y"]]) {
  keys.on(names, () => document.querySelector(`[data-do="${doing}"]:not(:disabled)`)?.click());
}
// Escape closes the form; the arrow keys move between the steps of the picture.
document.addEventListener("keydown", (event) => {
  if (event.altKey || event.ctrlKey || event.metaKey || event.defaultPrevented) return;
  if (event.key === "Escape" && event.target.closest("#panel")) panel().querySelector("[data-close]")?.click();
  const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!by || !event.target.closest("#picture a")) return;
  const links = all("#picture .canvas :is(.step a, a.add), #picture .outline-view :is(.step a, a.add)").filter((each) => each.offsetParent ?? each.getClientRects().length);
  const sorted = links.sort((a, b) => a.getBoundingClientRect().top - b.getBoundingClientRect().top);
  const next = sorted[sorted.indexOf(event.target.closest("a")) + by];
  if (!next) return;
  event.preventDefault();
  next.focus();
});

// Asks who else has the editor open, and shows their changes.
const look = async () => {
  if (!document.hidden) {
    const body = new URLSearchParams({ csrf_token: document.querySelector("[name=csrf_token]").value });
    try {
      const response = await fetch(`${editor().dataset.here}`, { method: "POST", body, headers: { Accept: "application/json" } });
      if (response.ok && !response.redirected) {
        const { seen, people } = await response.json();
        const said = people.length ? `${people.join(", ")} ${people.length === 1 ? "has" : "have"} this open, too.` : "";
        if (byId("presence").textContent !== said) byId("presence").textContent = said;
        if (seen !== editor().dataset.seen) await inTurn(catchUp);
      }
    } catch {
      // The server is unavailable; the next look tries again.
    }
  }
  setTimeout(look, LOOK_EVERY);
};
const catchUp = async () => {
  const { fresh } = await ask(location.href);
  redraw(fresh);
  const isTyping = isDirty || panel().contains(document.activeElement) || panel().dataset.panel === "json" || panel().dataset.panel === "trial";
  if (!isTyping) open(fresh);
};
setTimeout(look, LOOK_EVERY);
bind();
mark();
