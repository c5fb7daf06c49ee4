/** Repairs: violated goals, plans with the deltas that they would have, and their use. */

import { count, empty, h, number, problem, rowLine, short } from "../dom.js";
import { link } from "../router.js";

export function repairs(root, api) {
  const goals = h("section", { "aria-label": "Goals" });
  const plans = h("section", { "aria-label": "Plans", "aria-live": "polite" });
  root.append(h("h1", null, "Repairs"), goals, plans);
  return api.follow("repairs", ({ programs }) => {
    goals.replaceChildren(...(programs.length ? programs.map((each) => program(each, () => search(plans, api, each.name)))
      : [empty("No program that runs has goals. A GOAL says which query must have no rows, a FIX how to get there.")]));
  }, (error) => goals.replaceChildren(problem(error)));
}

function program({ name, goals, fixes }, onSearch) {
  const broken = goals.filter((goal) => goal.violations && !goal.soft);
  return h("div", { class: "panel" },
    h("div", { class: "heading" }, h("h2", null, name), h("span", { class: "figure" }, broken.length ? `${count(broken.length, "goal")} violated` : "all goals are met"),
      h("button", { type: "button", class: "first", onclick: onSearch }, "Find repairs")),
    h("ul", { class: "goals" }, goals.map((goal) => h("li", { class: goal.violations ? (goal.soft ? "soft" : "fails") : "holds" },
      h("span", { class: "mark", "aria-hidden": "true" }, goal.violations ? "✗" : "✓"), h("strong", null, goal.name),
      goal.soft ? " as few rows as possible of " : goal.most ? ` at most ${number(goal.most)} rows of ` : " no row of ",
      h("a", { href: link("query", goal.query) }, goal.query), h("span", { class: "badge" }, count(goal.rows, "row"))))),
    h("p", { class: "hint" }, fixes.length ? `Fixes: ${fixes.join(", ")}` : "There is no fix."));
}

async function search(root, api, name) {
  root.replaceChildren(h("p", { class: "hint" }, "Searching …"));
  try {
    const found = await api.post("repairs/preview", { program: name });
    root.replaceChildren(h("h2", null, "Plans"), found.stopped ? h("p", { class: "hint" }, `The search stopped early: ${found.stopped}.`) : "",
      ...(found.plans.length ? found.plans.map((plan, at) => shown(root, api, plan, at + 1)) : [empty("There is nothing to do, or no fix that helps.")]));
  } catch (error) {
    root.replaceChildren(problem(error));
  }
}

function shown(root, api, plan, at) {
  const apply = h("button", {
    type: "button", class: "first",
    onclick: async () => {
      apply.disabled = true;
      try {
        const { changed } = await api.post("repairs/apply", { plan: plan.id });
        root.replaceChildren(h("p", { class: "done", role: "status" }, `Applied: ${count(changed, "quad")} changed.`));
      } catch (error) {
        root.replaceChildren(problem(error));
      }
    },
  }, "Apply");
  const left = Object.entries(plan.violations).filter(([, many]) => many);
  return h("article", { class: "panel plan" },
    h("div", { class: "heading" }, h("h3", null, `Plan ${at}`), h("span", { class: "figure" }, `cost ${plan.cost} · ${count(plan.step_count, "step")} · ${count(plan.change_count, "change")}`), apply),
    left.length ? h("p", { class: "hint" }, `It leaves violations: ${left.map(([goal, many]) => `${goal} ${number(many)}`).join(", ")}`) : null,
    h("ol", { class: "steps" }, plan.steps.map((step) => h("li", null, h("strong", null, step.fix), " ", rowLine(step.row)))),
    h("details", { class: "text" }, h("summary", null, "Changes of the graph"), h("ul", null, plan.changes.map(({ diff, quad }) =>
      h("li", { class: diff > 0 ? "plus" : "minus" }, `${diff > 0 ? "+" : "−"} ${quad.map(short).join(" ")}`)))),
    h("details", { class: "text", open: true }, h("summary", null, "Deltas of the queries"), Object.entries(plan.preview).map(([name, rows]) =>
      h("div", null, h("h4", null, name), h("ul", null, rows.map(({ diff, row }) => h("li", { class: diff > 0 ? "plus" : "minus" }, `${diff > 0 ? "+" : "−"} `, rowLine(row))))))));
}
