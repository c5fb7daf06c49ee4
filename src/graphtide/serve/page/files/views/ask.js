/** Ask: an editor with highlighting and errors at their place; run once, or subscribe. */

import { empty, h, number, problem } from "../dom.js";
import { highlighted } from "../sparql.js";
import { link } from "../router.js";
import { Table } from "../table.js";

const EXAMPLE = "SELECT ?s ?p ?o WHERE {\n  ?s ?p ?o\n} LIMIT 100\n";
const PAUSE = 350;
let written = EXAMPLE; // kept while one looks at another page

export function ask(root, api) {
  const shadow = h("pre", { class: "shadow", "aria-hidden": "true" });
  const area = h("textarea", { spellcheck: "false", autocapitalize: "off", autocomplete: "off", "aria-label": "Query", rows: 10, oninput: changed, onscroll: follow, onkeydown: key });
  const said = h("div", { class: "said", role: "status", id: "said" });
  const result = h("section", { "aria-label": "Result" });
  const name = h("input", { placeholder: "name (optional)", "aria-label": "Name of the standing query", autocomplete: "off" });
  const once = h("button", { type: "button", class: "first", onclick: run }, "Run once");
  const stand = h("button", { type: "button", onclick: subscribe }, "Subscribe");
  area.value = written;
  area.setAttribute("aria-describedby", "said");
  root.append(h("h1", null, "Ask"),
    h("p", { class: "hint" }, "SPARQL, or RSP-QL over windows. Ctrl+Enter runs it once; a subscription goes on until you close it."),
    h("div", { class: "editor" }, shadow, area), said, h("div", { class: "actions" }, once, name, stand), result);

  let waiting = 0;
  let asked = 0;
  let wrong = null;
  paint();
  check();
  return () => clearTimeout(waiting);

  function changed() {
    written = area.value;
    wrong = null;
    paint();
    clearTimeout(waiting);
    waiting = setTimeout(check, PAUSE);
  }
  function paint() {
    shadow.replaceChildren(...highlighted(area.value, wrong), "\n");
    follow();
  }
  function follow() {
    shadow.scrollTop = area.scrollTop;
    shadow.scrollLeft = area.scrollLeft;
  }
  function key(event) {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      run();
    }
  }
  async function check() {
    asked += 1;
    const mine = asked;
    const found = await api.post("check", { text: area.value }).catch((error) => ({ ok: false, error }));
    if (mine !== asked) return;
    wrong = found.ok ? null : found.error;
    area.setAttribute("aria-invalid", String(!found.ok));
    paint();
    stand.disabled = !(found.ok && found.kind === "query");
    once.disabled = !(found.ok && found.kind !== "program");
    if (found.ok) {
      const words = { query: "This can be subscribed to.", once: "This can be run once only.", program: "This is a program: run it with graphtide serve PROGRAM." };
      said.replaceChildren(h("p", { class: "hint" }, words[found.kind]));
    } else if (area.value.trim()) {
      const place = wrong.line ? `Line ${wrong.line}, column ${wrong.column}: ` : "";
      said.replaceChildren(problem({ message: `${place}${wrong.message}`, hint: wrong.hint }));
    } else said.replaceChildren();
  }
  async function run() {
    result.replaceChildren(h("p", { class: "hint" }, "Running …"));
    try {
      const found = await api.post("ask", { text: area.value });
      const rows = found.results.bindings;
      const shown = found.total > rows.length ? `, the first ${number(rows.length)} are shown` : "";
      const table = new Table(found.head.vars, async (offset, limit) => ({ rows: rows.slice(offset, offset + limit), total: rows.length }));
      result.replaceChildren(h("h2", null, "Result"), h("p", { class: "hint" }, `${number(found.total)} rows in ${(1000 * found.seconds).toFixed(1)} ms${shown}`),
        rows.length ? table.root : empty("No row."));
      table.refresh(rows.length);
    } catch (error) {
      result.replaceChildren(problem(error));
    }
  }
  async function subscribe() {
    try {
      const found = await api.post("queries", { text: area.value, ...(name.value.trim() ? { name: name.value.trim() } : {}) });
      location.hash = link("query", found.name);
    } catch (error) {
      result.replaceChildren(problem(error));
    }
  }
}
