/** Highlights SPARQL, and underlines the place of an error. */

import { h } from "./dom.js";

const TOKENS = new RegExp([
  /(?<comment>#[^\n]*)/, /(?<iri><[^\s<>"{}|^`\\]*>)/, /(?<string>"(?:[^"\\\n]|\\.)*"?|'(?:[^'\\\n]|\\.)*'?)/, /(?<variable>[?$]\w+)/,
  /(?<keyword>\b(?:SELECT|CONSTRUCT|DESCRIBE|ASK|WHERE|FROM|NAMED|PREFIX|BASE|OPTIONAL|FILTER|UNION|MINUS|BIND|AS|VALUES|UNDEF|GRAPH|SERVICE|EXISTS|NOT|IN|DISTINCT|REDUCED|ORDER|BY|ASC|DESC|LIMIT|OFFSET|GROUP|HAVING|COUNT|SUM|MIN|MAX|AVG|SAMPLE|GROUP_CONCAT|REGISTER|RSTREAM|ISTREAM|DSTREAM|WINDOW|ON|RANGE|STEP|INSERT|DELETE|DATA|WITH|USING|LOAD|CLEAR|DROP|CREATE|ADD|MOVE|COPY|TO|INTO)\b)/,
  /(?<name>[\w-]*:[\w.-]*\w|[\w-]*:)/, /(?<number>\b\d+(?:\.\d+)?\b)/,
].map((each) => each.source).join("|"), "giu");

/** The place of a line and column (both from 1) in a text. */
function offsetOf(text, line, column) {
  const lines = text.split("\n");
  const before = lines.slice(0, line - 1).reduce((sum, each) => sum + each.length + 1, 0);
  return Math.min(text.length, before + column - 1);
}

/**
 * The text as nodes, each kind of word in a span of its class.
 * @param {{line?: number, column?: number} | null} [error] what is underlined: the word at its place
 */
export function highlighted(text, error = null) {
  const at = error?.line ? offsetOf(text, error.line, error.column ?? 1) : -1;
  const length = at < 0 ? 0 : Math.max(1, /^(?:\w+|\S)/u.exec(text.slice(at))?.[0].length ?? 1);
  const found = [];
  let done = 0;
  const add = (end, name) => {
    for (const [from, to, wrong] of split(done, end, at, length)) {
      const part = text.slice(from, to) || (wrong ? " " : "");
      if (!part) continue;
      const classes = [name, wrong ? "wrong" : ""].filter(Boolean).join(" ");
      found.push(classes ? h("span", { class: classes }, part) : part);
    }
    done = end;
  };
  for (const match of text.matchAll(TOKENS)) {
    add(match.index, "");
    add(match.index + match[0].length, Object.entries(match.groups ?? {}).find(([, value]) => value !== undefined)?.[0] ?? "");
  }
  add(text.length, "");
  if (at >= text.length && at >= 0) found.push(h("span", { class: "wrong" }, " "));
  return found;
}

/** A piece of text in up to three: before, at and after the place of an error. */
function split(from, to, at, length) {
  if (at < 0 || at >= to || at + length <= from) return [[from, to, false]];
  const [begin, end] = [Math.max(from, at), Math.min(to, at + length)];
  return [[from, begin, false], [begin, end, true], [end, to, false]];
}
