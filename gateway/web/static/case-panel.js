// Troubleshooting cases: searched, one shown whole with its relations and history, judged.

import { el, setText } from "/static/dom.js";
import { ErrorLine } from "/static/error-line.js";
import { formatFull } from "/static/format.js";
import { t, wordsFor } from "/static/i18n.js";
import { icon } from "/static/icons.js";
import { judgeCase, listItems, readCase, searchCases } from "/static/memory-routes.js";
import { showHidden } from "/static/visible.js";

const SEARCH_DELAY_MS = 300;
const SIGNALS = ["success", "stale", "rollback", "conflict", "high_risk"];
const SECTIONS = ["symptom_summary", "root_cause", "diagnosis", "resolution"];

const percent = (value) => `${Math.round(Number(value) * 100)} %`;
const stateBadge = (lifecycle) => el("span", { class: "case-state", "data-state": lifecycle }, wordsFor("case_is", lifecycle));

export class CasePanel {
  #search = el("input", { type: "search", autocomplete: "off", placeholder: t("case_search_hint"), "aria-label": t("case_search_hint"), "data-testid": "case-search" });
  #list = el("ul", { class: "memory-rows" });
  #errors = el("div", {});
  #whole = el("div", { class: "case-whole", "data-testid": "case" });
  #reading = null;
  #delay = null;
  element = el("div", { class: "memory-list" }, el("label", { class: "search" }, icon("search"), this.#search), this.#errors, this.#list, this.#whole);

  /** `caseId`: the case to begin with. */
  constructor(caseId = null) {
    this.#search.addEventListener("input", () => {
      clearTimeout(this.#delay);
      this.#delay = setTimeout(() => this.#find(), SEARCH_DELAY_MS);
    });
    if (caseId) this.#show(caseId);
    else this.#find();
  }

  #tell(error) {
    new ErrorLine(this.#errors).show(error);
  }

  async #find() {
    this.#reading?.abort();
    const reading = new AbortController();
    this.#reading = reading;
    const q = this.#search.value.trim();
    try {
      const found = q ? (await searchCases(q, reading.signal)).cases.map((found) => ({ id: found.case_id, title: found.symptom_summary, lifecycle: found.lifecycle }))
        : (await listItems({ kind: "case", signal: reading.signal })).items;
      if (reading.signal.aborted) return;
      this.#errors.replaceChildren();
      this.#whole.replaceChildren();
      this.#list.replaceChildren(...found.map((item) => this.#row(item)));
      if (found.length === 0) this.#list.append(el("li", { class: "quiet" }, q ? t("none_found", { q }) : t("case_none")));
    } catch (error) {
      if (!reading.signal.aborted) this.#tell(error);
    }
  }

  #row(item) {
    return el("li", {}, el("button", { class: "case-row", type: "button", "data-testid": "case-row", onclick: () => this.#show(item.id) },
      el("span", { class: "memory-title", dir: "auto" }, showHidden(item.title)), item.lifecycle && stateBadge(item.lifecycle)));
  }

  async #show(caseId) {
    // A search that is under way would put its list in the place of the case.
    clearTimeout(this.#delay);
    this.#reading?.abort();
    try {
      this.#draw(await readCase(caseId));
    } catch (error) {
      this.#tell(error);
    }
  }

  #draw(whole) {
    this.#list.replaceChildren();
    this.#errors.replaceChildren();
    const place = [whole.app_code, whole.environment].filter(Boolean).map(showHidden).join(t("list_comma"));
    const where = Object.entries(whole.metadata ?? {}).flatMap(([, value]) => value).map((value) => el("span", { class: "case-tag" }, showHidden(value)));
    this.#whole.replaceChildren(
      el("button", { class: "link-button", type: "button", "data-testid": "case-back", onclick: () => this.#find() }, icon("undo"), t("case_back")),
      el("h3", { dir: "auto" }, showHidden(whole.symptom_summary)),
      el("div", { class: "memory-facts" }, stateBadge(whole.lifecycle), el("span", {}, t("case_confidence", { percent: percent(whole.confidence) })), place && el("span", {}, place), where),
      ...SECTIONS.slice(1).filter((name) => whole[name]).map((name) => el("section", {}, el("h4", {}, t(`case_${name}`)), el("p", { class: "memory-text", dir: "auto" }, showHidden(whole[name])))),
      this.#judging(whole),
      ...this.#relations(whole),
      el("section", {}, el("h4", {}, t("case_history")), el("ol", { class: "case-history", "data-testid": "case-history" }, [...whole.history].reverse().map((entry) => this.#entry(entry)))));
    this.#whole.querySelector("button").focus();
  }

  #entry(entry) {
    return el("li", {}, el("span", {}, wordsFor("case_event", entry.event)), el("span", { class: "memory-source" }, `${wordsFor("case_by", entry.by)} · ${formatFull(entry.at)}`));
  }

  #judging(whole) {
    const state = el("span", { class: "memory-why", role: "status" }, t("case_votes", whole.feedback));
    const signal = el("select", { "aria-label": t("case_signal"), "data-testid": "case-signal" }, el("option", { value: "" }, t("case_signal")), SIGNALS.map((name) => el("option", { value: name }, t(`case_signal_${name}`))));
    const judge = async (vote) => {
      try {
        await judgeCase(whole.case_id, vote);
        await this.#show(whole.case_id);
      } catch (error) {
        setText(state, error.message);
      }
    };
    signal.addEventListener("change", () => { if (signal.value) judge({ signal: signal.value }); });
    const button = (words, helpful, testId) => el("button", { class: "button small", type: "button", "data-testid": testId, onclick: () => judge({ helpful }) }, words);
    return el("div", { class: "case-judge" }, button(t("case_helpful"), true, "case-helpful"), button(t("case_unhelpful"), false, "case-unhelpful"), signal, state);
  }

  /** A branch from this case to each related one; the thicker, the more alike. */
  #relations(whole) {
    if (!whole.similar_cases?.length) return [];
    const branches = whole.similar_cases.map((related) => this.#branch(related));
    return [el("section", {}, el("h4", {}, t("case_related")), el("ul", { class: "case-branches", "data-testid": "case-relations" }, branches))];
  }

  #branch(related) {
    const title = el("button", { class: "link-button", type: "button", dir: "auto", onclick: () => this.#show(related.case_id) }, t("loading"));
    const branch = el("li", {}, title, el("span", { class: "memory-source" }, `${wordsFor("relation", related.relation)} · ${percent(related.score)}`));
    branch.style.setProperty("--likeness", String(related.score));
    readCase(related.case_id).then((other) => setText(title, showHidden(other.symptom_summary))).catch(() => branch.remove());
    return branch;
  }
}
