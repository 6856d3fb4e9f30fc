// The agent's plan, which the person approves or sends back.

import { el } from "/static/dom.js";
import { renderProse } from "/static/prose.js";

export const isPlan = ({ name }) => name === "ExitPlanMode";

/** The plan of a call as prose; null where it is not known. */
export function planProse({ input }) {
  const plan = input?.plan;
  return typeof plan === "string" && plan.trim() ? el("div", { class: "plan prose", "data-testid": "plan", tabindex: "0" }, renderProse(plan)) : null;
}
