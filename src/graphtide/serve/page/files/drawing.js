/** Draws graphs: plans, automata and explanations, laid out by dagre. */

import { layout, Graph } from "./vendor/dagre.js";
import { h, number, s } from "./dom.js";

const CHARACTER = 7.25;
const LINE = 16;
const PAD = 10;
const LONGEST = 42;
const LONGEST_LABEL = 24;

/** Break a text into lines of at most some characters, at spaces where there are any. */
export function wrap(text, longest) {
  const lines = [];
  let line = "";
  for (const word of text.split(" ").flatMap((w) => w.match(new RegExp(`.{1,${longest}}`, "gu")) ?? [""])) {
    if (line && line.length + word.length + 1 > longest) {
      lines.push(line);
      line = word;
    } else line = line ? `${line} ${word}` : word;
  }
  return [...lines, line];
}

const widest = (lines) => Math.max(...lines.map((line) => line.length), 1) * CHARACTER;

/**
 * Lay a drawing out: nodes get x, y, width, height and wrapped lines; edges points and label.
 * A label has room on both sides of its line and stands on one of them, so no line goes through it.
 */
export function place({ direction, nodes, edges }) {
  const flat = direction === "LR";
  const graph = new Graph({ multigraph: true });
  graph.setGraph({ rankdir: direction, nodesep: 26, ranksep: flat ? 26 : 30, edgesep: 18, marginx: 12, marginy: 12 });
  nodes.forEach((node, at) => {
    const lines = node.lines.flatMap((line) => wrap(line, LONGEST));
    graph.setNode(String(at), { lines, width: widest(lines) + 2 * PAD, height: lines.length * LINE + 2 * PAD - 4 });
  });
  edges.forEach((edge, at) => {
    const lines = edge.label ? wrap(edge.label, LONGEST_LABEL) : [];
    const [wide, high] = lines.length ? [widest(lines), lines.length * LINE] : [0, 0];
    const size = flat ? { width: wide + 8, height: 2 * high + 12 } : { width: 2 * wide + 20, height: high + 4 };
    graph.setEdge(String(edge.source), String(edge.target),
      { lines, high, wide, labelpos: "c", ...(lines.length ? size : {}) }, String(at));
  });
  layout(graph);
  const placed = edges.map((edge, at) => {
    const found = graph.edge(String(edge.source), String(edge.target), String(at));
    return { ...edge, ...found, points: straight(found, flat, edge.source === edge.target) };
  });
  return { flat, nodes: nodes.map((node, at) => ({ ...node, ...graph.node(String(at)) })), edges: placed, ...graph.graph() };
}

/** The points of a line that goes straight past its own label. */
function straight({ points, lines, x, y, width, height }, flat, loop) {
  if (!lines.length || loop) return points;
  const near = points.reduce((best, p, at) => (Math.hypot(p.x - x, p.y - y) < Math.hypot(points[best].x - x, points[best].y - y) ? at : best), 0);
  const way = flat ? Math.sign(points.at(-1).x - points[0].x) : Math.sign(points.at(-1).y - points[0].y);
  const reach = flat ? { x: way * width / 2, y: 0 } : { x: 0, y: way * height / 2 };
  const middle = [{ x: x - reach.x, y: y - reach.y }, { x: x + reach.x, y: y + reach.y }];
  return [...points.slice(0, near), ...middle, ...points.slice(near + 1)];
}

/** A line through points, its corners rounded. */
function curve(points) {
  let way = `M${points[0].x} ${points[0].y}`;
  for (let at = 1; at < points.length - 1; at += 1) {
    const [a, b, c] = points.slice(at - 1, at + 2);
    const [before, after] = [Math.hypot(b.x - a.x, b.y - a.y) || 1, Math.hypot(c.x - b.x, c.y - b.y) || 1];
    const [back, on] = [Math.min(10, before / 2) / before, Math.min(10, after / 2) / after];
    way += `L${b.x - (b.x - a.x) * back} ${b.y - (b.y - a.y) * back}`;
    way += `Q${b.x} ${b.y} ${b.x + (c.x - b.x) * on} ${b.y + (c.y - b.y) * on}`;
  }
  return `${way}L${points.at(-1).x} ${points.at(-1).y}`;
}

const textAt = (lines, x, y, attributes) => lines.map((line, at) =>
  s("text", { x, y: y - ((lines.length - 1) * LINE) / 2 + at * LINE + 4, ...attributes }, line));

function drawEdge(edge, flat) {
  const path = s("path", { class: "edge", d: curve(edge.points), "marker-end": "url(#arrow)" });
  if (!edge.lines.length) return [path];
  const loop = edge.source === edge.target;
  if (!flat) return [path, ...textAt(edge.lines, edge.x + 7, edge.y, { class: "label start" })];
  const side = loop ? 1 : -1;
  return [path, ...textAt(edge.lines, edge.x, edge.y + side * (edge.high / 2 + 4), { class: "label" })];
}

function drawNode(node, at, onNode) {
  const { x, y, width, height } = node;
  const box = (inset, name) => s("rect", {
    class: name, x: x - width / 2 + inset, y: y - height / 2 + inset,
    width: width - 2 * inset, height: height - 2 * inset, rx: node.shape === "round" ? height / 2 : 6 - inset,
  });
  return s("g", {
    class: `node${node.hot ? " hot" : ""}${node.kind ? ` ${node.kind}` : ""}`, "data-node": at,
    onclick: onNode ? () => onNode(at) : null,
  }, s("title", null, node.title ?? node.lines.join("\n")), box(0, "box"), node.shape === "double" ? box(3, "rim") : null, ...textAt(node.lines, x, y, {}));
}

/**
 * A drawing as an element; it scrolls where it is wider than its place.
 * @param {{direction: string, nodes: object[], edges: object[]}} drawing
 * @param {string} label what it is, for those who do not see it
 */
export function draw(drawing, label, { onNode, placed = place(drawing) } = {}) {
  const { width, height } = placed;
  const arrow = s("marker", { id: "arrow", viewBox: "0 0 8 8", refX: 8, refY: 4, markerWidth: 8, markerHeight: 8, orient: "auto" },
    s("path", { class: "tip", d: "M0 1L8 4L0 7z" }));
  const picture = s("svg", { class: "picture", viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": label },
    s("defs", null, arrow), ...placed.edges.flatMap((edge) => drawEdge(edge, placed.flat)),
    ...placed.nodes.map((node, at) => drawNode(node, at, onNode)));
  return h("div", { class: "drawing", tabindex: 0, role: "group", "aria-label": label }, picture);
}

/** Rows per second over the last minute: added above the line, removed below it. */
export function sparkline(added, removed, during = "in the last minute") {
  const [width, half] = [120, 13];
  const most = Math.max(1, ...added, ...removed);
  const scale = (value) => (value ? Math.max(1.5, (Math.sqrt(value) / Math.sqrt(most)) * half) : 0);
  const step = width / Math.max(added.length, 1);
  const bars = (values, name, up) => values.map((value, at) => value ? s("rect", {
    class: name, x: at * step, width: Math.max(step - 0.5, 1), y: up ? half - scale(value) : half, height: scale(value),
  }) : null).filter(Boolean);
  const text = `${during} ${number(sum(added))} added, ${number(sum(removed))} removed`;
  return s("svg", { class: "spark", viewBox: `0 0 ${width} ${2 * half}`, width, height: 2 * half, role: "img", "aria-label": text },
    s("title", null, text), s("line", { x1: 0, x2: width, y1: half, y2: half }), ...bars(added, "plus", true), ...bars(removed, "minus", false));
}

const sum = (values) => values.reduce((total, value) => total + value, 0);
