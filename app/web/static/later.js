// The scheduled messages below the thread, as rendered by the server, and menus for a later time.

import { all, byId, page } from "./dom.js";
import { localize } from "./times.js";

let isAsking = false;
let hasChanged = false;
export const showLater = async () => {
  const section = byId("later");
  hasChanged = isAsking;
  if (!section || isAsking) return;
  isAsking = true;
  try {
    const fresh = (await page(section.dataset.address)).getElementById("later");
    const isUsed = section.contains(document.activeElement) && document.activeElement.matches("input, textarea");
    if (section.isConnected && !isUsed) {
      localize(fresh);
      section.replaceWith(fresh);
      nameZones();
    }
  } catch {
    // The next change asks again.
  }
  isAsking = false;
  if (hasChanged) showLater();
};
// Whether the message is scheduled, and not part of the thread.
export const isForLater = (message) => {
  const isLater = message.status === "scheduled";
  if (isLater || document.querySelector(`[data-later="${message.id}"]`)) showLater();
  return isLater;
};
export const nameZones = () => {
  for (const each of all("[data-zone]")) each.value = Intl.DateTimeFormat().resolvedOptions().timeZone;
};

// Scrolls an opened element into view as a whole.
document.addEventListener("toggle", (event) => {
  if (event.target.open && event.target.matches(".later .change, .later-menu")) event.target.scrollIntoView({ block: "nearest" });
}, true);
