/** Elements, terms and numbers. Data becomes text nodes and attributes only, never markup. */

const SVG = "http://www.w3.org/2000/svg";

/**
 * Make an element. `on…` attributes are listeners, `class` may be left out, null is skipped.
 * @param {string} tag
 * @param {Record<string, any> | null} [attributes]
 * @param {...(Node | string | number | null | undefined | false)} children
 */
export function h(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** The same for SVG. */
export function s(tag, attributes, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.flat().filter((c) => c !== null && c !== undefined && c !== false));
  return element;
}

const BARE = /#(integer|decimal|boolean|double|int|long)$/;

/** A term as a person reads it: the last segment of an IRI, a number without its type. */
export function short(term) {
  if (!term) return "";
  if (term.type === "uri") {
    const tail = term.value.replace(/[/#]+$/, "");
    return `:${tail.slice(Math.max(tail.lastIndexOf("/"), tail.lastIndexOf("#")) + 1)}`;
  }
  if (term.type === "bnode") return `_:${term.value}`;
  if (term["xml:lang"]) return `"${term.value}"@${term["xml:lang"]}`;
  return BARE.test(term.datatype ?? "") ? term.value : `"${term.value}"`;
}

/** A term in N-Triples. */
export function ntriples(term) {
  if (term.type === "uri") return `<${term.value}>`;
  if (term.type === "bnode") return `_:${term.value}`;
  const escapes = { "\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r" };
  const text = `"${term.value.replace(/["\\\n\r]/g, (c) => escapes[c])}"`;
  if (term["xml:lang"]) return `${text}@${term["xml:lang"]}`;
  return term.datatype ? `${text}^^<${term.datatype}>` : text;
}

/** A term written in N-Triples, as `short` shows it. */
export function shortText(text) {
  if (text.startsWith("<")) return short({ type: "uri", value: text.slice(1, -1) });
  const typed = /^"(.*)"\^\^<.*#(?:integer|decimal|boolean|double|int|long)>$/s.exec(text);
  return typed ? typed[1] : text.replace(/\^\^<.*>$/s, "");
}

/** A term as an element; the whole of it is its title. */
export function term(value) {
  if (!value) return h("span", { class: "unbound", title: "unbound" }, "–");
  return h("span", { class: `term ${value.type}`, title: ntriples(value) }, short(value));
}

/** A row as one line: its columns with their terms. */
export function rowLine(row) {
  const parts = Object.entries(row).map(([name, value]) =>
    h("span", { class: "binding" }, h("span", { class: "name" }, `${name} `), term(value)));
  return h("span", { class: "line" }, parts.length ? parts : "(empty row)");
}

export const number = (value) => Number(value).toLocaleString("en");

export function bytes(value) {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let at = 0;
  while (value >= 1000 && at < units.length - 1) [value, at] = [value / 1000, at + 1];
  return `${value >= 100 || at === 0 ? Math.round(value) : value.toFixed(1)} ${units[at]}`;
}

export const count = (many, thing) => `${number(many)} ${thing}${many === 1 ? "" : "s"}`;

/** What was wrong, with what to do about it. */
export function problem(error) {
  return h("div", { class: "problem", role: "alert" },
    h("p", null, error.message.split("\n")[0]),
    error.hint ? h("p", { class: "hint" }, error.hint) : null);
}

/** Nothing to see yet, and why. */
export const empty = (text) => h("p", { class: "empty" }, text);
