// The agent's questions to the person as a form: choices, and words of the person's own.

import { el } from "/static/dom.js";
import { t } from "/static/i18n.js";
import { showHidden } from "/static/visible.js";

const MAX_ANSWER_CHARS = 2000;

/** Whether a call asks the person; after a reload its questions are not known. */
export const isQuestion = ({ name }) => name === "AskUserQuestion";

const isText = (value) => typeof value === "string" && value !== "";

/** The questions of a call that asks the person; null where there are none. */
export function questionsOf(call) {
  const questions = call.input?.questions;
  return isQuestion(call) && Array.isArray(questions) ? questions.filter((asked) => isText(asked?.question)) : null;
}

let groups = 0;

/**
 * One question, filled in with `draft`: `answer()` returns the labels chosen and the person's own words, empty for none, `filledIn()` the same
 * as `{chosen, own}`.
 */
function questionField({ question, header, options, multiSelect }, draft) {
  const group = `question-${groups += 1}`;
  const isOne = multiSelect !== true;
  const choices = (Array.isArray(options) ? options : []).filter((option) => isText(option?.label)).map(({ label, description }) => {
    const box = el("input", { type: isOne ? "radio" : "checkbox", name: group, checked: draft?.chosen.includes(label) });
    const words = el("span", { dir: "auto" }, showHidden(label), isText(description) && el("small", {}, showHidden(description)));
    return { box, label, element: el("label", { class: "choice", "data-testid": "choice" }, box, words) };
  });
  const own = el("input", { type: "text", class: "choice-own", maxlength: MAX_ANSWER_CHARS, "aria-label": [showHidden(question), t("question_own")].join(t("colon")), placeholder: t("question_own"), "data-testid": "choice-own" });
  own.value = draft?.own ?? "";
  own.addEventListener("input", () => {
    if (isOne && own.value.trim()) for (const { box } of choices) box.checked = false;
  });
  const element = el("fieldset", { class: "question" },
    el("legend", { dir: "auto" }, isText(header) && [el("span", { class: "question-header" }, showHidden(header)), " "], showHidden(question)),
    choices.map((choice) => choice.element), own);
  element.addEventListener("change", (event) => {
    if (isOne && event.target !== own) own.value = "";
  });
  const chosen = () => choices.filter(({ box }) => box.checked).map(({ label }) => label);
  return { question, element, answer: () => [...chosen(), own.value.trim()].filter(Boolean).join(", "), filledIn: () => ({ chosen: chosen(), own: own.value }) };
}

/** `send(answers)` gets an answer to each question by its text; `skip()` is for none. `drafts`: what `edited(drafts)` got last. */
export function questionForm(questions, drafts, { send, skip, edited }) {
  const fields = questions.map((asked, index) => questionField(asked, drafts[index]));
  const submit = el("button", { class: "button primary", type: "submit", "data-testid": "question-send" }, t("question_send"));
  const form = el("form", { class: "questions" }, fields.map((field) => field.element),
    el("div", { class: "approval-actions" }, submit, el("button", { class: "button", type: "button", "data-testid": "question-skip", onclick: skip }, t("question_skip"))));
  for (const kind of ["input", "change"]) form.addEventListener(kind, () => edited(fields.map((field) => field.filledIn())));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const open = fields.find((field) => !field.answer());
    if (open) open.element.querySelector("input").focus();
    else send(Object.fromEntries(fields.map((field) => [field.question, field.answer()])));
  });
  return form;
}
