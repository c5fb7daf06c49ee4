/** The frame of the page: numbers, list, time, connection; the views are in `views/`. */

import { Api } from "./api.js";
import { bytes, h, number } from "./dom.js";
import { link, route } from "./router.js";
import { timeBar } from "./time.js";
import { ask } from "./views/ask.js";
import { overview } from "./views/overview.js";
import { pattern } from "./views/pattern.js";
import { query } from "./views/query.js";
import { repairs } from "./views/repairs.js";
import { rule } from "./views/rule.js";
import { run } from "./views/run.js";

const byId = (id) => /** @type {HTMLElement} */ (document.getElementById(id));
const api = new Api();

// --- the connection ---

let connected = true;
api.onstate = (now) => {
  if (now === connected) return;
  connected = now;
  const banner = byId("banner");
  banner.hidden = false;
  banner.className = `banner ${now ? "back" : "lost"}`;
  banner.textContent = now ? "The connection is back." : "The connection to the server is lost. Trying again …";
  if (now) setTimeout(() => { banner.hidden = connected; }, 3000);
};

// --- the list of queries, patterns and rules ---

const search = h("input", { type: "search", placeholder: "Search  /", "aria-label": "Search queries, patterns and rules", oninput: () => drawList() });
const entries = h("ul", { class: "entries" });
byId("list").append(search, entries);
let listed = [];
const PLURALS = { query: "Queries", window: "Windows", pattern: "Patterns", rule: "Rules" };
export const viewOf = (kind) => (kind === "window" ? "query" : kind);

function drawList() {
  const wanted = search.value.trim().toLowerCase();
  const held = document.activeElement?.closest?.("#list a")?.getAttribute("href");
  const lines = [];
  for (const kind of Object.keys(PLURALS)) {
    const found = listed.filter((each) => each.kind === kind && each.name.toLowerCase().includes(wanted));
    if (!found.length) continue;
    lines.push(h("li", { class: "group" }, PLURALS[kind]));
    for (const each of found) {
      const href = link(viewOf(kind), each.name);
      lines.push(h("li", null, h("a", { href, "aria-current": location.hash === href ? "page" : null },
        h("span", { class: "name" }, each.name), h("span", { class: "badge" }, number(each.rows)))));
    }
  }
  entries.replaceChildren(...(lines.length ? lines : [h("li", { class: "empty" }, wanted ? "Nothing has that name." : "Nothing is watched yet.")]));
  if (held) [...entries.querySelectorAll("a")].find((each) => each.getAttribute("href") === held)?.focus();
}

document.addEventListener("keydown", (event) => {
  const typing = /^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement?.tagName ?? "");
  if (event.key === "/" && !typing) {
    event.preventDefault();
    search.focus();
  }
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (step && byId("list").contains(document.activeElement)) {
    event.preventDefault();
    const links = [...entries.querySelectorAll("a")];
    const at = links.indexOf(document.activeElement) + step;
    if (at < 0) search.focus();
    else links[Math.min(at, links.length - 1)]?.focus();
  }
  if (event.key === "Escape" && document.activeElement === search) {
    search.value = "";
    drawList();
  }
});

// --- the numbers of the graph, and the views ---

const listeners = new Set();
let last = null;
setTimeout(() => {
  if (last !== null || !byId("banner").hidden) return;
  byId("banner").hidden = false;
  byId("banner").textContent = "Waiting for the graph. The first time, the engine is compiled: that takes up to a minute.";
}, 3000);

/** Call back with the overview now and whenever it changes. */
function onOverview(callback) {
  listeners.add(callback);
  if (last) callback(last);
  return () => listeners.delete(callback);
}

const bar = timeBar(byId("time"), api, () => {
  followOverview();
  show();
});

function drawNumbers(found) {
  const { run: spark } = found;
  const pairs = spark ? [["micro-batch", spark.batch === null ? "–" : number(spark.batch)], ["time", number(found.clock)],
    ["changes read", number(spark.rows)], ["changes/s", number(spark.rows_per_s)], ["state", bytes(spark.state_bytes)], ["rejected", number(spark.rejected)]]
    : [["time", number(found.clock)], ["transactions", number(found.tx)], ["quads", number(found.quads)],
    ["changes/s", number(found.changes_per_second)], ["memory", bytes(found.memory_bytes)]];
  byId("numbers").replaceChildren(...pairs.map(([name, value]) => h("div", null, h("dt", null, name), h("dd", null, value))));
}

let endOverview = () => {};
function followOverview() {
  endOverview();
  endOverview = api.follow("overview", (found) => {
    if (last === null && connected) byId("banner").hidden = true;
    last = found;
    listed = found.queries;
    drawNumbers(found);
    drawList();
    bar(found);
    byId("to-repairs").hidden = !found.repairs;
    byId("to-run").hidden = !found.run; // a run on Spark shows its output, and cannot be asked
    byId("to-ask").hidden = Boolean(found.run);
    listeners.forEach((callback) => callback(found));
  });
}

followOverview();
const show = route(byId("main"), {
  "": (root) => overview(root, onOverview), query, pattern, rule, ask, repairs, run,
}, api);
