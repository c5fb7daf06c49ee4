/** Why a row is in an answer, as a picture of its quads and a list of steps; or why it is not. */

import { path } from "../api.js";
import { h, ntriples, problem, shortText } from "../dom.js";
import { draw } from "../drawing.js";

/** A form for a row that is missing; columns that are left empty may have any value. */
export function whyNotForm(columns, onAsk) {
  const inputs = columns.map((name) => h("input", { name, placeholder: `?${name}`, "aria-label": `Value of ?${name}`, autocomplete: "off", spellcheck: "false" }));
  return h("form", {
    class: "why-not",
    onsubmit: (event) => {
      event.preventDefault();
      onAsk(Object.fromEntries(inputs.filter((i) => i.value.trim()).map((i) => [i.name, i.value.trim()])));
    },
  }, h("span", null, "A row is missing?"), ...inputs, h("button", null, "Why not?"));
}

/** Ask about a row that is there, or (with bindings) one that is not, and show the explanation. */
export async function whyPanel(root, api, name, row, bindings = null) {
  const close = h("button", { type: "button", class: "quiet", onclick: () => root.replaceChildren() }, "Close");
  root.replaceChildren(h("p", { class: "hint" }, "Looking …"));
  try {
    const found = bindings === null
      ? await api.post(path("queries", name, "why"), { row: Object.fromEntries(Object.entries(row).map(([k, v]) => [k, ntriples(v)])), all: false })
      : await api.post(path("queries", name, "why-not"), { bindings });
    root.replaceChildren(h("div", { class: "heading" }, h("h2", null, found.title), close), ...explained(found));
  } catch (error) {
    root.replaceChildren(h("div", { class: "heading" }, h("h2", null, "Why"), close), problem(error));
  }
  root.scrollIntoView({ block: "nearest" });
}

/** The parts of an explanation: its picture, its steps, changes and notes. */
export function explained(found) {
  const quads = new Map();
  const walk = (step) => {
    (step.quads ?? []).forEach((quad) => quads.set(quad.join(" "), { quad, kind: "" }));
    (step.children ?? []).forEach(walk);
  };
  found.derivations.forEach(walk);
  for (const { diff, quad } of found.changes) {
    quads.set(quad.join(" "), { quad, kind: diff > 0 ? "plus" : "minus" });
  }
  return [
    quads.size ? draw(picture([...quads.values()]), `The quads behind ${found.title}`) : null,
    h("ul", { class: "steps" }, found.derivations.flatMap((step) => (step.kind === "all" ? step.children ?? [] : [step])).map(stepItem)),
    found.changes.length ? h("div", { class: "changes" }, h("p", null, "It would be so with"),
      h("ul", null, found.changes.map(({ diff, quad }) => h("li", { class: diff > 0 ? "plus" : "minus" }, `${diff > 0 ? "+" : "−"} ${quad.map(shortText).join(" ")}`)))) : null,
    ...found.notes.map((note) => h("p", { class: "hint" }, note)),
  ].filter(Boolean);
}

/** Quads as a graph: terms are nodes, predicates edges. */
function picture(quads) {
  const ids = new Map();
  const nodes = [];
  const node = (text) => {
    if (!ids.has(text)) {
      ids.set(text, nodes.length);
      nodes.push({ lines: [shortText(text)], title: text, shape: text.startsWith('"') ? "box" : "round" });
    }
    return ids.get(text);
  };
  const edges = quads.map(({ quad: [subject, predicate, object], kind }) => ({
    source: node(subject), target: node(object), label: `${{ plus: "+ ", minus: "− " }[kind] ?? ""}${shortText(predicate)}`,
  }));
  return { direction: "LR", nodes, edges };
}

function stepItem(step) {
  return h("li", { class: step.holds ? "holds" : "fails" },
    h("span", { class: "mark", "aria-label": step.holds ? "holds" : "does not hold" }, step.holds ? "✓" : "✗"),
    h("span", { class: "code" }, step.text || "all of"), step.note ? h("span", { class: "note" }, ` ${step.note}`) : null,
    step.quads ? h("ul", { class: "quads" }, step.quads.map((quad, at) =>
      h("li", { title: quad.join(" ") }, quad.map(shortText).join(" "), step.times?.[at]?.length ? ` at ${step.times[at].join(", ")}` : ""))) : null,
    step.children ? h("ul", { class: "steps" }, step.children.map(stepItem)) : null);
}
