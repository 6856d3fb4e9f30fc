// Descriptions of the gateway's own tools. Any other tool keeps its name.

import { t, wordsFor } from "/static/i18n.js";
import { plainText } from "/static/markdown.js";
import { isPlan, planOf } from "/static/plan.js";
import { isQuestion } from "/static/question-form.js";

const CASE_TOOL = /^mcp__memory_case__memory_case_(search|upsert|feedback|render)$/;
const MEMORY_TOOL = /^mcp__memory__memory_(search|get|remember|forget)$/;
const WORDS = { EnterPlanMode: "plan_begins", ExitPlanMode: "plan", Agent: "agent", TaskCreate: "task_create", TaskUpdate: "task_update", TaskList: "task_list", TaskGet: "task_get" };
const MAX_CHARS = 160;
// A plan's marks are left out before it is cut.
const MAX_PLAN_CHARS = 4 * MAX_CHARS;

const caseTool = (name) => CASE_TOOL.exec(name)?.[1] ?? null;

/** Whether its calls are told in words, so that the name itself has to be looked up. */
export const isToldInWords = (name) => caseTool(name) !== null;

/** A call that did not go well did not do what its name says: it was only asked to. */
export function toolWords(name, status) {
  const asks = MEMORY_TOOL.exec(name)?.[1];
  if (asks) return t(`ask_memory_${asks}`);
  if (isQuestion({ name })) return t("ask_person");
  if (WORDS[name]) return t(WORDS[name]);
  const does = caseTool(name);
  return does ? t(status === "ok" ? `case_${does}_done` : `case_${does}`) : name;
}

function parsed(text) {
  try {
    return JSON.parse(text) ?? {};
  } catch {
    return {};
  }
}

/** The beginning of a text field in JSON that was cut off. */
function clippedText(summary, field) {
  const found = new RegExp(`"${field}":\\s*"((?:[^"\\\\]|\\\\.)*)`).exec(summary)?.[1] ?? "";
  try {
    return JSON.parse(`"${found}"`);
  } catch {
    return "";
  }
}

const textsOf = (...values) => values.flat().filter((value) => typeof value === "string" && value.trim());

const BRIEF = {
  search: ({ query }) => textsOf(query),
  upsert: ({ case: told }, summary) => textsOf(told?.case_id ?? clippedText(summary, "case_id"), told?.symptom_summary ?? clippedText(summary, "symptom_summary")),
  render: ({ case_ids: ids }) => textsOf(ids ?? []),
  feedback: ({ case_id: id, helpful, signal }) => textsOf(typeof helpful === "boolean" ? t(helpful ? "case_helpful" : "case_unhelpful") : null, signal ? wordsFor("case_signal", signal) : null, id),
};

/** A task is told by its number and what becomes of it; anything else by the gateway's line. */
function taskBrief({ input, summary }) {
  const { taskId, status, subject } = input ?? parsed(summary);
  if (!taskId) return summary;
  return textsOf(t("task_number", { id: taskId }), subject ?? "", status ? wordsFor("todo", status) : "").join(" · ");
}

const clipped = (text) => (text.length > MAX_CHARS ? `${text.slice(0, MAX_CHARS - 1)}…` : text);

/** The beginning of a plan in plain words; the gateway's line about it has all its lines as one. */
function planBrief(tool) {
  const plan = planOf(tool)?.slice(0, MAX_PLAN_CHARS) ?? tool.summary.replace(/(^| )#+ /gu, "$1");
  return clipped(plainText(plan).replace(/\s+/gu, " "));
}

/** What a call is about, and whether that is words rather than code. After a reload there is no input, only the gateway's line about it. */
export function toolBrief(tool) {
  const does = caseTool(tool.name);
  if (isPlan(tool)) return { text: planBrief(tool), isWords: true };
  if (tool.name === "Agent" || tool.name.startsWith("Task")) return { text: taskBrief(tool), isWords: true };
  if (!does) return { text: tool.summary, isWords: isQuestion(tool) };
  const said = BRIEF[does](tool.input ?? parsed(tool.summary), tool.summary).join(" · ");
  const text = said || tool.summary;
  return { text: clipped(text), isWords: Boolean(said) || does === "search" };
}

/** Why a call failed: the sentence that its answer holds, where it is one of ours. */
export function toolError({ name, error }) {
  const { message } = caseTool(name) && typeof error === "string" ? parsed(error) : {};
  return typeof message === "string" && message ? message : error;
}
