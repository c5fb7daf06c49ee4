/** A pattern: its automaton, with tokens that move; what they wait for, and until when. */

import { path } from "../api.js";
import { count, empty, h, number, problem, rowLine, s } from "../dom.js";
import { draw, place } from "../drawing.js";

const DOTS = 40;

export function pattern(root, api, name) {
  const figure = h("span", { class: "figure" });
  const stage = h("section", { "aria-label": "Automaton" });
  const tokens = h("tbody");
  const matches = h("ol", { class: "feed" });
  const facts = h("ul", { class: "facts" });
  root.append(h("div", { class: "heading" }, h("h1", null, name), figure), stage,
    h("div", { class: "two" },
      h("section", null, h("h2", null, "Tokens"), h("div", { class: "scroll" }, h("table", { class: "tokens" },
        h("thead", null, h("tr", null, ...["values", "since", "waits for", "until"].map((each) => h("th", { scope: "col" }, each)))), tokens))),
      h("section", null, h("h2", null, "Matches"), matches)),
    h("details", { class: "text" }, h("summary", null, "What holds for the whole pattern"), facts));

  let placed = null;
  let picture = null;
  const dots = new Map();
  return api.follow(path("patterns", name), (found) => {
    figure.textContent = [count(found.matched, "match").replace("matchs", "matches"), found.tokens && count(found.token_count, "token"), `time ${number(found.clock)}`].filter(Boolean).join(" · ");
    if (placed === null) {
      placed = place(found);
      const drawn = draw(found, `The automaton of ${name}`, { placed });
      picture = drawn.querySelector("svg");
      stage.replaceChildren(drawn);
      facts.replaceChildren(...found.facts.map((fact) => h("li", null, fact)));
    }
    if (found.tokens) moveDots(picture, placed, dots, found);
    tokens.replaceChildren(...(!found.tokens ? [h("tr", null, h("td", { colspan: 4 }, empty("On Spark, tokens are in the partitions.")))]
      : found.tokens.length ? found.tokens.map((token) => tokenLine(token, found.clock))
      : [h("tr", null, h("td", { colspan: 4 }, empty("No token: nothing has begun.")))]));
    matches.replaceChildren(...(found.matches.length ? found.matches.map((match) =>
      h("li", { class: "delta" }, h("p", { class: "when" }, match.start === match.time ? `time ${number(match.time)}` : `time ${number(match.start)} to ${number(match.time)}`), rowLine(match.row)))
      : [h("li", { class: "empty" }, "It has not matched yet.")]));
  }, (error) => root.replaceChildren(problem(error)));
}

function tokenLine(token, clock) {
  const left = token.until === null ? "without end" : `${number(token.until)} (${number(Math.max(0, token.until - clock))} left)`;
  return h("tr", null, h("td", null, rowLine(token.values)), h("td", null, number(token.since)),
    h("td", null, token.waits_for.join(" or ") || "nothing more"), h("td", null, left));
}

/** A dot for each token, beside the state that it is in; a dot that moves on slides over. */
function moveDots(picture, placed, dots, found) {
  const here = new Map();
  const seen = new Set();
  for (const token of found.tokens.slice(0, DOTS)) {
    const state = token.states.at(-1);
    const node = placed.nodes[state];
    const at = here.get(state) ?? 0;
    here.set(state, at + 1);
    const x = node.x - node.width / 2 + 8 + (at % 10) * 11;
    const y = node.y - node.height / 2 - 7 - Math.floor(at / 10) * 11;
    let dot = dots.get(token.order);
    if (!dot) {
      dot = s("circle", { class: "token", r: 4.5 }, s("title", null, Object.values(token.values).map((v) => v.value).join(" ")));
      dots.set(token.order, dot);
      picture.append(dot);
    }
    dot.style.transform = `translate(${x}px, ${y}px)`;
    seen.add(token.order);
  }
  for (const [order, dot] of dots) {
    if (seen.has(order)) continue;
    dot.classList.add("done");
    setTimeout(() => dot.remove(), 700);
    dots.delete(order);
  }
}
