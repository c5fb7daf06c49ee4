/** The time bar: a slider over the durable history. The whole page shows the graph as of then. */

import { h, number } from "./dom.js";

/**
 * @param {HTMLElement} root
 * @param {import("./api.js").Api} api
 * @param {() => void} onMove called when another moment is to be shown
 */
export function timeBar(root, api, onMove) {
  const slider = h("input", { type: "range", min: 0, max: 0, value: 0, "aria-label": "Transaction that is shown", oninput: label, onchange: move });
  const said = h("output", null, "now");
  const live = h("button", { type: "button", onclick: () => go(null) }, "Back to now");
  root.append(h("span", null, "History"), slider, said, live);

  function label() {
    said.textContent = `after transaction ${number(slider.value)} of ${number(slider.max)}`;
  }
  function move() {
    go(Number(slider.value) >= Number(slider.max) ? null : Number(slider.value));
  }
  function go(tx) {
    api.at = tx;
    root.classList.toggle("past", tx !== null);
    live.hidden = tx === null;
    if (tx === null) slider.value = slider.max;
    onMove();
  }
  live.hidden = true;

  return (overview) => {
    if (api.at !== null) {
      said.textContent = `after transaction ${number(api.at)}, time ${number(overview.clock)}`;
      return;
    }
    root.hidden = overview.history === null;
    if (overview.history === null || document.activeElement === slider && slider.matches(":active")) return;
    const { first_tx: first, last_tx: end } = overview.history;
    Object.assign(slider, { min: String(first), max: String(end) });
    slider.value = String(end);
    said.textContent = `now, after ${number(end)} transactions`;
  };
}
