/** The overview: every query, pattern and rule with its rows, what moves, and its last change. */

import { empty, h, number, rowLine } from "../dom.js";
import { sparkline } from "../drawing.js";
import { link } from "../router.js";

const UNITS = { query: "rows", window: "rows", pattern: "matches", rule: "firings" };

export function overview(root, onOverview) {
  const list = h("div", { class: "cards" });
  root.append(h("h1", null, "What is watched"), list);
  return onOverview(({ queries, run }) => {
    const during = run ? "in the last micro-batches" : undefined;
    const held = document.activeElement?.dataset?.card;
    list.replaceChildren(...(queries.length ? queries.map((each) => card(each, during)) : [empty("No query is registered. Ask one.")]));
    if (held) [...list.children].find((each) => each.dataset.card === held)?.focus();
  });
}

function card(each, during) {
  const href = link(each.kind === "window" ? "query" : each.kind, each.name);
  const made = h("a", { class: `card ${each.kind}`, href },
    h("div", { class: "title" }, h("h2", null, each.name), h("span", { class: "kind" }, each.kind)),
    h("div", { class: "figures" },
      h("span", { class: "big" }, number(each.rows)), h("span", { class: "unit" }, UNITS[each.kind]),
      each.tokens === undefined ? null : h("span", { class: "unit" }, `${number(each.tokens)} tokens`),
      each.added ? sparkline(each.added, each.removed, during) : null),
    lastOf(each));
  made.dataset.card = href;
  return made;
}

function lastOf({ last }) {
  if (!last) return h("p", { class: "last" }, "nothing yet");
  if (last.row) return h("p", { class: "last" }, h("span", { class: "when" }, `at ${number(last.time)} `), rowLine(last.row));
  const [first] = last.rows;
  return h("p", { class: "last" }, h("span", { class: "when" }, `at ${number(last.time)} `),
    first ? h("span", { class: first.diff > 0 ? "plus" : "minus" }, `${first.diff > 0 ? "+" : "−"} `, rowLine(first.row)) : "no row",
    last.added + last.removed > 1 ? h("span", { class: "more" }, ` and ${number(last.added + last.removed - 1)} more`) : null);
}
