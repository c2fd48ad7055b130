// The other viewers of the conversation. Each look counts for half a minute.

import { byId } from "./dom.js";
import { fieldsOf, people, posted } from "./talks.js";

const LOOK_MS = 20_000;
export const looks = new Map();
export const see = (id) => looks.set(id, Date.now() + LOOK_MS * 1.5);
export const showViewers = () => {
  const line = byId("viewers");
  if (!line) return;
  for (const [id, ends] of looks) if (ends < Date.now()) looks.delete(id);
  const names = [...looks.keys()].map((id) => people[id] ?? "Support");
  line.hidden = !names.length;
  line.textContent = names.length ? `Also looking: ${names.join(", ")}` : "";
};
export const look = async () => {
  const composer = byId("composer");
  if (!composer || document.hidden) return;
  const { status, body } = await posted(composer.dataset.look, fieldsOf({}));
  if (status >= 300 || composer !== byId("composer")) return;
  for (const { id } of body) see(id);
  showViewers();
};
setInterval(() => {
  look();
  showViewers();
}, LOOK_MS);
