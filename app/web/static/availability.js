// Switches between available and away without a reload, also in the member's other tabs.

import { all, byId } from "./dom.js";

const form = byId("availability");
const tabs = new BroadcastChannel("availability");
const show = (availability) => {
  for (const each of all(".menu > summary .standing")) each.className = `standing ${availability}`;
  for (const each of all(".menu > summary [data-standing]")) each.textContent = availability;
  for (const each of all("button[aria-pressed]", form)) each.ariaPressed = String(each.value === availability);
};
form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const body = new URLSearchParams(new FormData(form));
  body.set("availability", event.submitter.value);
  const said = byId("availability-said");
  try {
    const response = await fetch(form.action, { method: "POST", body, headers: { Accept: "application/json" } });
    if (!response.ok) throw new Error(`${response.status}`);
    const answer = await response.json();
    show(answer.availability);
    said.textContent = answer.said;
    tabs.postMessage({ workspace: form.dataset.workspace, availability: answer.availability });
  } catch {
    said.textContent = "That did not work. Try again in a moment.";
  }
});
tabs.addEventListener("message", ({ data }) => {
  if (data.workspace === form.dataset.workspace) show(data.availability);
});
