/** One query: its answer, its deltas, its plan with live numbers, and why a row is (not) there. */

import { path } from "../api.js";
import { bytes, count, empty, h, number, problem, rowLine } from "../dom.js";
import { draw } from "../drawing.js";
import { highlighted } from "../sparql.js";
import { Table } from "../table.js";
import { whyNotForm, whyPanel } from "./why.js";

const SHOWN_DELTAS = 200;

export function query(root, api, name) {
  const at = (...more) => path("queries", name, ...more);
  const figure = h("span", { class: "figure" });
  const answer = h("section", { class: "answer", "aria-label": "Answer" });
  const feed = h("ol", { class: "feed", "aria-label": "Deltas, newest first" });
  const reasons = h("section", { class: "reasons", "aria-live": "polite" });
  const plan = h("section", { class: "plan" }, h("h2", null, "Plan"));
  const text = h("details", { class: "text" }, h("summary", null, "Query text"));
  const close = h("button", {
    type: "button", class: "quiet", hidden: true,
    onclick: () => api.remove(at()).then(() => { location.hash = "#/"; }, (error) => reasons.replaceChildren(problem(error))),
  }, "Close this query");
  root.append(h("div", { class: "heading" }, h("h1", null, name), figure, close), text,
    h("div", { class: "two" }, answer, h("section", null, h("h2", null, "Deltas"), feed)), reasons, plan);

  let table = null; // of a run on Spark there is none: its answer is in the partitions
  let seen = null;
  const endQuery = api.follow(at(), (found) => {
    figure.textContent = [count(found.rows, "row"), found.kind, found.strategy].filter(Boolean).join(" · ");
    if (seen === null) {
      close.hidden = !found.own;
      text.append(h("pre", { class: "code" }, ...highlighted(found.text)));
      if (found.columns !== null) {
        table = new Table(found.columns, (offset, limit) => load(api, at, offset, limit), (row) => whyPanel(reasons, api, name, row));
        answer.append(h("h2", null, "Answer"), table.root, h("p", { class: "hint" }, "Choose a row to see why it is here."),
          whyNotForm(found.columns, (bindings) => whyPanel(reasons, api, name, null, bindings)));
      } else answer.parentElement.classList.remove("two");
      seen = Math.max(-1, ...found.deltas.map((delta) => delta.seq));
      found.deltas.slice().reverse().forEach((delta) => addDelta(feed, delta, false));
      table?.refresh(found.rows);
      if (!found.deltas.length) feed.append(h("li", { class: "empty" }, "Nothing has changed yet."));
      return;
    }
    const fresh = found.deltas.filter((delta) => delta.seq > seen).reverse();
    if (!fresh.length && (table === null || table.total === found.rows)) return;
    seen = Math.max(seen, ...fresh.map((delta) => delta.seq));
    fresh.forEach((delta) => addDelta(feed, delta, true));
    const moved = fresh.flatMap((delta) => delta.rows);
    table?.refresh(found.rows, moved.filter((m) => m.diff > 0).map((m) => m.row), moved.filter((m) => m.diff < 0).map((m) => m.row));
  }, (error) => root.replaceChildren(problem(error)));
  const endPlan = api.follow(at("plan"), (found) => drawPlan(plan, name, found), () => plan.replaceChildren());
  return () => {
    endQuery();
    endPlan();
  };
}

async function load(api, at, offset, limit) {
  const found = await api.get(at("rows"), { offset, limit });
  return { rows: found.results.bindings, total: found.total };
}

function addDelta(feed, delta, fresh) {
  feed.querySelector(".empty")?.remove();
  const rows = delta.rows.slice(0, 5).map((moved) =>
    h("li", { class: moved.diff > 0 ? "plus" : "minus" }, `${moved.diff > 0 ? "+" : "−"} `, rowLine(moved.row)));
  const hidden = delta.added + delta.removed - rows.length;
  feed.prepend(h("li", { class: fresh ? "delta fresh" : "delta" },
    h("p", { class: "when" }, `time ${number(delta.time)}`, delta.tx === null ? null : ` · transaction ${number(delta.tx)}`,
      h("span", { class: "counts" }, h("span", { class: "plus" }, `+${number(delta.added)}`), " ", h("span", { class: "minus" }, `−${number(delta.removed)}`))),
    h("ul", null, rows, hidden > 0 ? h("li", { class: "more" }, `and ${number(hidden)} more`) : null)));
  while (feed.children.length > SHOWN_DELTAS) feed.lastElementChild?.remove();
}

function drawPlan(root, name, found) {
  const held = root.querySelector(".drawing");
  const [left, top] = held ? [held.scrollLeft, held.scrollTop] : [0, 0];
  if (found.strategy === undefined) { // on Spark
    root.replaceChildren(h("h2", null, "How it is divided among partitions"), h("pre", { class: "code" }, found.text));
    return;
  }
  const stores = found.stored ? `; it stores ${count(found.stored, "row")} in ${bytes(found.bytes)}` : "";
  root.replaceChildren(h("h2", null, "Plan"),
    h("p", { class: "hint" }, `Strategy ${found.strategy}${stores}. ${found.why ? `Why: ${found.why}.` : ""}`),
    found.nodes.length ? draw(found, `The plan of ${name}`) : empty("There is no plan."),
    h("details", { class: "text" }, h("summary", null, "Plan as text"), h("pre", { class: "code" }, found.text)));
  const drawing = root.querySelector(".drawing");
  if (drawing) Object.assign(drawing, { scrollLeft: left, scrollTop: top });
}
