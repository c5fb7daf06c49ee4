/** A run on Spark: its micro-batches, the partitions of its stages, its state, and what it rejected. */

import { bytes, count, empty, h, number, problem } from "../dom.js";

export function run(root, api) {
  const figure = h("span", { class: "figure" });
  const said = h("p", { class: "hint", role: "status" });
  const batches = h("tbody");
  const stages = h("section", { "aria-label": "Partitions" });
  const rejected = h("tbody");
  const total = h("span", { class: "figure" });
  root.append(h("div", { class: "heading" }, h("h1", null, "Run on Spark"), figure), said,
    h("div", { class: "two" },
      h("section", null, h("h2", null, "Micro-batches"), table("Micro-batches, newest first",
        ["micro-batch", "changes", "ms", "changes/s", "deltas", "rejected", "state"], batches)),
      stages),
    h("section", null, h("div", { class: "heading" }, h("h2", null, "Quarantine"), total), table("Rejected rows, newest first",
      ["micro-batch", "reason", "where", "text"], rejected)));
  return api.follow("run", (found) => {
    figure.textContent = `${count(found.partitions, "partition")} · state ${bytes(found.state_bytes)} in ${count(found.state_rows, "entry").replace("entrys", "entries")}`;
    said.textContent = found.ended ?? position(found);
    batches.replaceChildren(...(found.batches.length ? found.batches.map(batchLine) : [nothing(7, "No micro-batch is done yet: Spark is starting.")]));
    stages.replaceChildren(h("h2", null, "Partitions, in their last micro-batch"), ...found.stages.map(stageTable));
    total.textContent = `${count(found.quarantined, "row")} rejected`;
    rejected.replaceChildren(...(found.rejected.length ? found.rejected.map(rejectedLine) : [nothing(4, "Nothing was rejected.")]));
  }, (error) => root.replaceChildren(problem(error)));
}

const table = (label, names, body) => h("div", { class: "scroll run", tabindex: 0, role: "group", "aria-label": label }, h("table", { class: "tokens" },
  h("thead", null, h("tr", null, names.map((name) => h("th", { scope: "col" }, name)))), body));

const nothing = (columns, text) => h("tr", null, h("td", { colspan: columns }, empty(text)));

const optional = (value, format = number) => (value === undefined ? "–" : format(value));

/** How far the change logs are read; of other sources that is not known. */
function position({ file, line, lag_files: files, lag_bytes: left }) {
  if (left === null || !file) return "";
  const behind = left ? `${bytes(left)} behind${files ? `, ${count(files, "file")} not begun` : ""}` : "up to date";
  return `${file} is read up to line ${number(line - 1)}; ${behind}.`;
}

function batchLine(each) {
  return h("tr", null, h("th", { scope: "row" }, number(each.batch)), h("td", null, optional(each.rows)), h("td", null, optional(each.ms)),
    h("td", null, optional(each.rows_per_s)),
    h("td", null, h("span", { class: "plus" }, `+${number(each.added)}`), " ", h("span", { class: "minus" }, `−${number(each.removed)}`)),
    h("td", null, number(each.rejected)), h("td", null, optional(each.state_bytes, bytes)));
}

/** The partitions of a stage; a bar shows the time of each beside that of the slowest. */
function stageTable({ stage, partitions }) {
  const longest = Math.max(...partitions.map((each) => each.seconds), 1e-9);
  const lines = partitions.map((each) => h("tr", null, h("th", { scope: "row" }, number(each.partition)), h("td", null, bytes(each.received_bytes)),
    h("td", null, h("meter", { min: 0, max: longest, value: each.seconds, "aria-label": `time of partition ${each.partition}` }), ` ${(1000 * each.seconds).toFixed(0)} ms`),
    h("td", null, bytes(each.state_bytes))));
  return h("div", null, h("h3", null, stage), table(`Partitions of ${stage}`, ["partition", "input", "time", "state"], h("tbody", null, lines)));
}

function rejectedLine(each) {
  const place = each.file ? `${each.file}${each.line === null ? "" : `:${each.line}`}` : each.time === null ? "" : `time ${number(each.time)}`;
  return h("tr", null, h("th", { scope: "row" }, number(each.batch)), h("td", null, each.reason), h("td", null, place), h("td", { class: "code" }, each.text));
}
