// The skills, sub-agents and commands of the workspace: whether agents are given them, and why not.

import { requestJson } from "/static/api.js";
import { el } from "/static/dom.js";
import { t, wordsFor } from "/static/i18n.js";
import { icon } from "/static/icons.js";
import { showHidden } from "/static/visible.js";

export const readSkills = () => requestJson("/skills");

function row({ kind, name, description, path, loaded, problem, acts }) {
  const state = loaded ? t("skill_loaded") : wordsFor("skill_problem", problem);
  const about = acts.length && !loaded ? state + t("in_parentheses", { text: acts.join(t("list_comma")) }) : state;
  return el("li", { title: showHidden(path) },
    el("span", { class: loaded ? "ops-ok" : "ops-bad" }, icon(loaded ? "check" : "alert")),
    el("span", { class: "ops-name" }, el("strong", {}, showHidden(name)), ` · ${wordsFor("skill_kind", kind)}`),
    el("span", { class: "ops-detail" }, showHidden(about)),
    el("span", { class: "ops-note" }, showHidden(description || path)));
}

/** The section for the answer of `readSkills`. */
export function skillSection({ skills, truncated }) {
  const waits = skills.some(({ problem }) => ["acts", "changed", "unapproved"].includes(problem));
  return el("section", { class: "ops-section" }, el("h3", {}, t("skills")),
    skills.length === 0 ? el("p", { class: "quiet" }, t("skills_none")) : el("ul", { class: "ops-rows", "data-testid": "ops-skills" }, skills.map(row)),
    truncated ? el("p", { class: "quiet" }, t("skills_truncated")) : null,
    waits ? el("p", { class: "quiet", "data-testid": "skills-approve" }, t("skills_approve")) : null);
}
