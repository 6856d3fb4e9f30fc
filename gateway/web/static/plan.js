// The agent's plan, which the person approves or sends back.

import { el } from "/static/dom.js";
import { renderProse } from "/static/prose.js";

export const isPlan = ({ name }) => name === "ExitPlanMode";

/** The plan of a call as it was written; null where it is not known. */
export const planOf = ({ input }) => (typeof input?.plan === "string" && input.plan.trim() ? input.plan : null);

/** The plan of a call as prose; null where it is not known. */
export function planProse(call) {
  const plan = planOf(call);
  return plan && el("div", { class: "plan prose", "data-testid": "plan", tabindex: "0" }, renderProse(plan));
}
