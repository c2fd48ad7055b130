// Pictures of automations. [data-zoomed] is a picture's frame: Ctrl with the wheel, and buttons with data-zoom, scale
// it. A refreshed picture keeps the reader's zoom.

import { all } from "./dom.js";

const STEP = 1.2;
const [SMALLEST, LARGEST] = [0.2, 2];
let scale = 1;
const frame = () => document.querySelector("[data-zoomed]");
const drawn = () => frame()?.querySelector("svg.picture");
const show = () => {
  const picture = drawn();
  if (!picture) return;
  const { width, height } = picture.viewBox.baseVal;
  picture.setAttribute("width", Math.round(width * scale));
  picture.setAttribute("height", Math.round(height * scale));
  for (const each of all("[data-zoom=reset]")) each.textContent = `${Math.round(scale * 100)} %`;
};
// The point under the pointer, or else the center, stays in place.
const zoom = (wanted, at) => {
  const box = frame();
  const before = scale;
  scale = Math.min(LARGEST, Math.max(SMALLEST, wanted));
  const { left, top, width, height } = box.getBoundingClientRect();
  const [x, y] = at ? [at.clientX - left, at.clientY - top] : [width / 2, height / 2];
  const [fromLeft, fromTop] = [(box.scrollLeft + x) / before, (box.scrollTop + y) / before];
  show();
  box.scrollTo(fromLeft * scale - x, fromTop * scale - y);
};
if (drawn()) {
  for (const each of all(".tools .zoom")) each.hidden = false;
  document.addEventListener("click", (event) => {
    const wanted = event.target.closest("[data-zoom]")?.dataset.zoom;
    if (wanted === "in") zoom(scale * STEP);
    else if (wanted === "out") zoom(scale / STEP);
    else if (wanted === "reset") zoom(1);
    else if (wanted === "fit") zoom(Math.min(1, frame().clientWidth / drawn().viewBox.baseVal.width));
  });
  document.addEventListener(
    "wheel",
    (event) => {
      if (!event.ctrlKey || !event.target.closest?.("[data-zoomed]")) return;
      event.preventDefault();
      zoom(scale * (event.deltaY < 0 ? STEP : 1 / STEP), event);
    },
    { passive: false },
  );
  addEventListener("refreshed", show);
  // The step where a run is, or where it failed.
  const here = frame().querySelector("[data-here]")?.closest("foreignObject");
  if (here) frame().scrollTo(here.x.baseVal.value - frame().clientWidth / 3, here.y.baseVal.value - frame().clientHeight / 2);
}
