// The steps of a turn, from the lines of its log: what took how long, one after the other or at the same time.

import { el } from "/static/dom.js";
import { formatDuration } from "/static/format.js";
import { t, wordsFor } from "/static/i18n.js";
import { icon } from "/static/icons.js";
import { showHidden } from "/static/visible.js";

const ICONS = { request: "pencil", memory: "book", agent: "spark", model: "spark", permission: "shield", tool: "file", error: "alert", reply: "check" };
const DETAIL_CHARS = 160;
// A step that took no time worth naming still has a mark.
const MIN_WIDTH = 0.4;

const blocksOf = (message) => (Array.isArray(message?.content) ? message.content : []);

/** What a model call brought, in the order in which it came. */
function produced({ content }) {
  return blocksOf({ content }).map((block) => (block?.type === "ToolUseBlock" ? block.name : { ThinkingBlock: t("thought"), TextBlock: t("step_text") }[block?.type])).filter(Boolean);
}

class Steps {
  found = [];
  #last_ms = null;
  #requested_ms = null;
  #model = null;
  #called_ms = new Map();
  #memory = null;

  add(kind, line, from_ms, to_ms, detail = "", status = "") {
    const step = { kind, line, from_ms: Math.min(from_ms, to_ms), to_ms, detail, status };
    this.found.push(step);
    return step;
  }

  /** A line of any kind; those that are no step of their own set the time from which the next one counts. */
  take(value, line) {
    const at_ms = Date.parse(value.ts);
    if (!Number.isFinite(at_ms)) return;
    this.#last_ms ??= at_ms;
    this.#takers[value.kind]?.(value, line, at_ms);
    this.#last_ms = at_ms;
  }

  #takers = {
    request: (value, line, at_ms) => {
      this.#memory = value.memory;
      this.add("request", line, at_ms, at_ms, value.message);
    },
    context: (value, line, at_ms) => this.add("memory", line, this.#last_ms, at_ms, this.#memory === "off" ? t("memory_is_off") : value.injected?.length ? t("memory_injected", { count: value.injected.length }) : ""),
    message: (value, line, at_ms) => this.#takeMessage(value.message ?? {}, line, at_ms),
    permission: (value, line, at_ms) => this.add("permission", line, this.#called_ms.get(value.tool_use_id) ?? at_ms, at_ms, `${value.tool} · ${value.rule}`, value.verdict === "deny" ? "denied" : "ok"),
    tool: (value, line, at_ms) => Object.assign(this.add("tool", line, at_ms - (value.duration_ms ?? 0), at_ms, value.summary, value.status), { name: value.name }),
    error: (value, line, at_ms) => this.add("error", line, at_ms, at_ms, value.message ?? value.where ?? "", "failed"),
    response: (value, line, at_ms) => this.add("reply", line, this.#last_ms, at_ms, wordsFor("outcome", value.outcome)),
  };

  #takeMessage(message, line, at_ms) {
    if (message.subtype === "init") this.add("agent", line, this.#last_ms, at_ms);
    if (message.type !== "AssistantMessage") this.#model = null;
    if (message.subtype === "status" || message.type === "UserMessage") this.#requested_ms = at_ms;
    if (message.type !== "AssistantMessage") return;
    this.#model ??= this.add("model", line, this.#requested_ms ?? this.#last_ms, at_ms);
    this.#model.to_ms = at_ms;
    this.#model.detail = [this.#model.detail, ...produced(message)].filter(Boolean).join(t("list_comma"));
    for (const block of blocksOf(message)) if (block?.type === "ToolUseBlock") this.#called_ms.set(block.id, at_ms);
  }
}

/** `values`: the lines as objects, null for one that cannot be read. */
export function stepsOf(values) {
  const steps = new Steps();
  values.forEach((value, line) => { if (value) steps.take(value, line); });
  return steps.found;
}

function bar(step, start_ms, whole_ms) {
  const track = el("span", { class: "log-bar" }, el("i", {}));
  const left = (step.from_ms - start_ms) / whole_ms * 100;
  const width = Math.max(MIN_WIDTH, (step.to_ms - step.from_ms) / whole_ms * 100);
  track.firstChild.style.left = `${Math.min(left, 100 - width)}%`;
  track.firstChild.style.width = `${width}%`;
  return track;
}

/** The steps as a list of buttons; `open(line)` shows the line that a step comes from. Null where there is none. */
export function timeline(values, open) {
  const steps = stepsOf(values);
  if (!steps.length) return null;
  const start_ms = Math.min(...steps.map((step) => step.from_ms));
  const whole_ms = Math.max(1, Math.max(...steps.map((step) => step.to_ms)) - start_ms);
  return el("ol", { class: "log-timeline", "data-testid": "log-timeline", "aria-label": t("log_timeline") }, steps.map((step) => {
    const name = step.name ?? t(`step_${step.kind}`);
    const detail = String(step.detail ?? "").replace(/\s+/g, " ").slice(0, DETAIL_CHARS);
    return el("li", {}, el("button", { class: "log-step", type: "button", "data-kind": step.kind, "data-status": step.status || null, onclick: () => open(step.line) },
      icon(ICONS[step.kind]),
      el("span", { class: "log-step-name" }, showHidden(name)),
      el("bdi", { class: "log-step-detail" }, showHidden(detail)),
      bar(step, start_ms, whole_ms),
      el("span", { class: "log-step-time" }, step.to_ms > step.from_ms ? formatDuration(step.to_ms - step.from_ms) : "")));
  }));
}
