/** A rule: its recent firings, with their events on a time line. */

import { path } from "../api.js";
import { count, empty, h, number, problem, rowLine, s } from "../dom.js";

const SHOWN = 12;

export function rule(root, api, name) {
  const figure = h("span", { class: "figure" });
  const line = h("section", { "aria-label": "Time line" });
  const list = h("ol", { class: "feed wide" });
  root.append(h("div", { class: "heading" }, h("h1", null, name), figure), h("h2", null, "Time line"), line, h("h2", null, "Firings"), list);
  let seen = null;
  return api.follow(path("rules", name), (found) => {
    figure.textContent = `fired ${count(found.fired, "time")} · time ${number(found.clock)}`;
    if (!found.firings.length) {
      line.replaceChildren(empty("It has not fired yet."));
      return;
    }
    const newest = found.firings[0].number;
    line.replaceChildren(timeLine(found.firings.slice(0, SHOWN), found.clock, name));
    list.replaceChildren(...found.firings.map((firing) => h("li", { class: seen !== null && firing.number > seen ? "delta fresh" : "delta" },
      h("p", { class: "when" }, `time ${number(firing.time)} · firing ${number(firing.number)}`), rowLine(firing.row),
      firing.why ? h("details", { class: "text" }, h("summary", null, "Why"), h("pre", { class: "code" }, firing.why)) : null)));
    seen = newest;
  }, (error) => root.replaceChildren(problem(error)));
}

/** One lane for each firing: its events as bars, the firing itself as a mark. */
function timeLine(firings, clock, name) {
  const [width, lane, left, top] = [760, 30, 8, 26];
  const times = firings.flatMap((f) => [f.time, ...Object.values(f.events).flat()]);
  const first = Math.min(...times);
  const last = Math.max(...times, first + 1);
  const x = (time) => left + ((time - first) / (last - first)) * (width - 2 * left - 110);
  const height = top + firings.length * lane + 8;
  const ticks = [0, 0.25, 0.5, 0.75, 1].map((part) => Math.round(first + part * (last - first)));
  const lanes = firings.flatMap((firing, at) => {
    const y = top + at * lane + lane / 2;
    const bars = Object.entries(firing.events).map(([event, [begin, end]], index) => s("g", { class: `event e${index % 4}` },
      s("title", null, `${event}: ${begin === end ? begin : `${begin} to ${end}`}`),
      s("rect", { x: x(begin) - 6, y: y - 6, width: x(end) - x(begin) + 12, height: 12, rx: 6 })));
    return [s("line", { class: "lane", x1: left, x2: x(firing.time) + 10, y1: y, y2: y }), ...bars,
      s("path", { class: "mark", d: `M${x(firing.time) + 10} ${y - 7}l7 7l-7 7z` }, s("title", null, `fired at ${firing.time}`)),
      s("text", { class: "start", x: x(firing.time) + 22, y: y + 4 }, `fired at ${number(firing.time)}`)];
  });
  const names = [...new Set(firings.flatMap((f) => Object.keys(f.events)))];
  return h("div", { class: "drawing", tabindex: 0, role: "group", "aria-label": `Time line of ${name}` },
    s("svg", { class: "timeline", viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": `The events of the last ${firings.length} firings of ${name}, up to time ${clock}` },
      ...[...new Set(ticks)].map((time) => s("text", { class: "tick", x: x(time), y: 14 }, number(time))), ...lanes),
    h("p", { class: "legend" }, names.map((each, at) => h("span", null, h("span", { class: `dot e${at % 4}` }), each))));
}
