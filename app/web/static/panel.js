// table[data-panel]: on a wide screen, a row opens the page of its first link beside the list. The address becomes that
// of the page, so that it can be shared, and Back closes the panel. Without the script, the link leads to the page.

import { all, made, page, textButton } from "./dom.js";
import * as keys from "./keys.js";
import { localize } from "./times.js";

const wide = matchMedia("(min-width: 75rem)");
const list = { address: location.href, title: document.title };
const whole = (address) => address.split("#")[0];
const linkOf = (row) => row?.querySelector(".lead a");
// Forms without an action go to the current address, which becomes the panel's. These belong to the list.
for (const form of all("main form:not([action])")) form.action = location.pathname;

const panel = made("aside", { class: "panel", tabindex: -1 });
const wholePage = made("a", { class: "button small" }, "Whole page");
const bar = made("p", { class: "actions" }, wholePage, textButton("Close", () => history.back()));

let opener = null;
const select = (link) => {
  for (const row of keys.rows()) row.removeAttribute("aria-selected");
  link.closest("tr").setAttribute("aria-selected", "true");
  opener = link;
};
const open = async (link, { takesFocus = false, isBack = false } = {}) => {
  select(link);
  let fetched;
  try {
    fetched = await page(link.href);
  } catch {
    location.assign(link.href); // the page shows the error
    return;
  }
  if (link !== opener) return;
  const main = fetched.getElementById("main");
  for (const each of all(".filters, .chips, .visit", main)) each.remove();
  if (!isBack) history[panel.isConnected ? "replaceState" : "pushState"](null, "", link.href);
  document.title = fetched.title;
  panel.setAttribute("aria-label", `Details: ${main.querySelector("h1").textContent.trim()}`);
  wholePage.href = link.href;
  panel.replaceChildren(bar, ...main.childNodes);
  localize(panel);
  document.querySelector(".frame").append(panel);
  panel.scrollTop = 0;
  dispatchEvent(new CustomEvent("refreshed", { detail: panel }));
  if (takesFocus) panel.focus({ preventScroll: true });
  link.closest("tr").scrollIntoView({ block: "nearest" });
};
const close = () => {
  const link = opener;
  opener = null;
  if (!panel.isConnected) return;
  panel.remove();
  document.title = list.title;
  link.focus();
};

addEventListener("popstate", () => {
  if (whole(location.href) === whole(list.address)) return close();
  const link = keys.rows().map(linkOf).find((each) => each && whole(each.href) === whole(location.href));
  // The address is of a list or a row that this document does not have.
  return link ? open(link, { isBack: true }) : location.reload();
});
wide.addEventListener("change", () => panel.isConnected && location.reload());
addEventListener("click", (event) => {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey || !wide.matches) return;
  const link = linkOf(event.target.closest("main table[data-panel] > tbody > tr"));
  const pressed = event.target.closest("a, button, summary, input, select, label");
  if (!link || (pressed ? pressed !== link : getSelection().type === "Range")) return;
  event.preventDefault();
  open(link, { takesFocus: true });
});
// The panel follows `j` and `k` to another row.
addEventListener("reached", ({ detail: row }) => {
  const link = panel.isConnected && linkOf(row);
  if (link && link !== opener) open(link);
});
keys.on(["Escape"], () => {
  if (!panel.isConnected) return false;
  history.back();
});
