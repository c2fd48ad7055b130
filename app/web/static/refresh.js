// [data-refresh="seconds"] with an id: fetched again and replaced while work is in progress, until the server omits the
// attribute. What the reader has opened, typed, chosen or focused stays. The wait grows while nothing changes.

import { all, byId, made, page } from "./dom.js";
import { localize } from "./times.js";

const LONGEST_WAIT = 30_000;
const regions = () => all("[id][data-refresh]");
const typedInto = "input:not([type=hidden]), select, textarea";

// The same element in the fresh part; among elements with the same name, the one with the same index.
const named = (each) =>
  [each.id, each.name, each.getAttribute("href"), each.matches("a, button, summary") && each.textContent.trim()].join("\n");
const alike = (each, within) => all(each.tagName, within).filter((other) => named(other) === named(each));
const twin = (each, now, fresh) => each && alike(each, fresh)[alike(each, now).indexOf(each)];

const isTyped = (field) => {
  if (field.matches("select")) return !field.selectedOptions[0]?.defaultSelected;
  return field.value !== field.defaultValue || field.checked !== field.defaultChecked;
};
const keep = (now, fresh) => {
  for (const each of all("details > summary", now)) {
    const other = twin(each, now, fresh);
    if (other) other.parentElement.open = each.parentElement.open;
  }
  for (const each of all(typedInto, now)) {
    const other = isTyped(each) && twin(each, now, fresh);
    if (other) [other.value, other.checked] = [each.value, each.checked];
  }
  const row = twin(now.querySelector("[aria-selected=true] a"), now, fresh);
  row?.closest("tr, li").setAttribute("aria-selected", "true");
};

const isInUse = (region) => {
  const marked = getSelection();
  return region.querySelector("form[aria-busy]") || (marked.type === "Range" && region.contains(marked.anchorNode));
};
const replace = (now, fresh) => {
  const focused = now.contains(document.activeElement) ? document.activeElement : null;
  const next = twin(focused, now, fresh);
  const place = focused?.matches("textarea, input") ? [focused.selectionStart, focused.selectionEnd] : [null];
  keep(now, fresh);
  now.replaceWith(fresh);
  dispatchEvent(new CustomEvent("refreshed", { detail: fresh }));
  if (focused) (next ?? byId("main")).focus({ preventScroll: true });
  if (next && place[0] !== null) next.setSelectionRange(...place);
};

const status = made("p", { class: "unseen", role: "status" });
const state = (region) => region.querySelector(".state")?.textContent;

const update = (fetched) => {
  let hasChanged = false;
  for (const now of regions()) {
    const fresh = fetched.getElementById(now.id);
    if (!fresh || isInUse(now)) continue;
    localize(fresh);
    if (fresh.textContent === now.textContent && fresh.dataset.refresh === now.dataset.refresh) continue;
    if (state(fresh) !== state(now)) status.textContent = `Now: ${state(fresh)}`;
    replace(now, fresh);
    hasChanged = true;
  }
  return hasChanged;
};

let wait = 0;
let timer;
const shortest = () => Math.min(...regions().map((each) => Number(each.dataset.refresh))) * 1000;
const later = () => {
  clearTimeout(timer);
  if (regions().length) timer = setTimeout(round, wait);
};
const round = async () => {
  if (document.hidden) return;
  let hasChanged = false;
  try {
    hasChanged = update(await page(location.href));
  } catch {
    // The server is unavailable for a moment; the next round tries again.
  }
  wait = hasChanged ? shortest() : Math.min(wait * 1.5, LONGEST_WAIT);
  later();
};
const begin = () => {
  if (document.hidden || !regions().length) return;
  document.body.append(status);
  wait = shortest();
  later();
};
document.addEventListener("visibilitychange", begin);
addEventListener("refreshed", begin); // other scripts may have added a part that is refreshed
begin();
