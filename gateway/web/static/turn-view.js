// Draws one turn: the message, the steps, the reply and the outcome. `update` may be called at any rate.

import { ApprovalCard } from "/static/approval-card.js";
import { el, place, setText } from "/static/dom.js";
import { formatFull } from "/static/format.js";
import { t } from "/static/i18n.js";
import { icon } from "/static/icons.js";
import { LiveText } from "/static/live-text.js";
import { memoryChip } from "/static/memory-chip.js";
import { noticeLine, outcomeLine } from "/static/outcome.js";
import { renderProse } from "/static/prose.js";
import { ToolCallView } from "/static/tool-call.js";
import { isOpen } from "/static/turn.js";
import { showHidden } from "/static/visible.js";

// A finished turn with more tool calls than this shows their number, and the calls on request.
const MAX_PLAIN_TOOLS = 6;

class ThinkingView {
  #written = document.createTextNode("");
  #length = 0;
  #text = el("div", { class: "thinking-text", dir: "auto" }, this.#written);
  #summary = el("span", {});
  element = el("details", { class: "thinking", "data-testid": "thinking" }, el("summary", {}, icon("chevron"), this.#summary), this.#text);

  update(segment, isLive) {
    setText(this.#summary, t(isLive ? "thinking" : "thought"));
    this.element.classList.toggle("is-live", isLive);
    this.#written.appendData(showHidden(segment.text.slice(this.#length)));
    this.#length = segment.text.length;
  }
}

class NoticeView {
  element = el("div", {});

  update(segment) {
    if (this.element.textContent !== segment.message) this.element.replaceChildren(noticeLine(segment));
  }
}

class LiveTextView {
  #live = new LiveText();
  element = this.#live.element;

  update(segment) {
    this.#live.update(segment.text);
  }
}

export class TurnView {
  #turn;
  #actions;
  #views = new Map();
  #userText = el("div", { class: "user-text", dir: "auto" });
  #queueNote = el("span", {});
  #queueLine;
  #user;
  #steps = el("div", { class: "steps" });
  #working = el("div", { class: "working" }, el("span", { class: "dots" }, el("i"), el("i"), el("i")), el("span", {}));
  #assistant = el("div", { class: "assistant", "data-testid": "message-assistant" });
  #memory = { shown: null, element: null };
  #fold = null;
  #end = null;
  element = el("article", { class: "turn" });

  /** `actions`: takeBack(turn), answer(turn, approval, decision, remember), openLog(logFile). */
  constructor(turn, actions) {
    this.#turn = turn;
    this.#actions = actions;
    const takeBack = el("button", { class: "link-button", type: "button", "data-testid": "take-back", onclick: () => actions.takeBack(turn) }, icon("undo"), t("take_back"));
    this.#queueLine = el("div", { class: "queue-line" }, icon("clock"), this.#queueNote, takeBack);
    this.#user = el("div", { class: "user", "data-testid": "message-user", "aria-label": t("you") }, this.#userText);
    this.update();
  }

  update() {
    const turn = this.#turn;
    this.element.dataset.state = turn.state;
    if (turn.turnId) this.element.dataset.turnId = turn.turnId;
    place(this.element, [turn.text === null ? null : this.#drawUser(turn), turn.state === "sending" || turn.state === "queued" ? null : this.#drawAssistant(turn)]);
  }

  #drawUser(turn) {
    setText(this.#userText, turn.text);
    this.#user.title = formatFull(turn.createdAt);
    const isQueued = turn.state === "queued";
    if (isQueued) this.element.dataset.testid = "queued-item";
    else delete this.element.dataset.testid;
    setText(this.#queueNote, turn.position ? t("queued_at", { position: turn.position }) : t("queued"));
    this.#queueLine.querySelector("button").disabled = turn.takingBack;
    const sending = turn.state === "sending" ? this.#drawWorking("sending") : null;
    place(this.#user, [this.#userText, isQueued ? this.#queueLine : sending]);
    return this.#user;
  }

  #drawAssistant(turn) {
    place(this.#steps, this.#drawSegments(turn));
    const parts = [this.#drawMemory(turn), this.#steps.childNodes.length ? this.#foldSteps(turn) : null];
    if (turn.state === "completed") parts.push(...this.#drawEnd(turn));
    else parts.push(this.#isQuiet(turn) ? this.#drawWorking(turn.state === "stopping" ? "stopping" : "working") : null);
    place(this.#assistant, parts);
    return this.#assistant;
  }

  #drawSegments(turn) {
    const kept = new Set(turn.segments);
    for (const segment of this.#views.keys()) if (!kept.has(segment)) this.#views.delete(segment);
    return turn.segments.map((segment, index) => {
      if (!this.#views.has(segment)) this.#views.set(segment, this.#viewOf(segment));
      const view = this.#views.get(segment);
      view.update(segment, turn.state !== "completed" && index === turn.segments.length - 1);
      return view.element;
    });
  }

  #foldSteps(turn) {
    const tools = turn.segments.filter((segment) => segment.kind === "tool");
    if (turn.state !== "completed" || tools.length <= MAX_PLAIN_TOOLS) return this.#steps;
    if (!this.#fold) {
      const bad = tools.filter((tool) => tool.status !== "ok").length;
      const words = bad ? t("steps_bad", { count: tools.length, bad }) : t("steps", { count: tools.length });
      this.#fold = el("details", { class: "steps-fold", "data-testid": "steps", open: bad > 0 }, el("summary", {}, icon("chevron"), words), this.#steps);
    }
    return this.#fold;
  }

  #viewOf(segment) {
    if (segment.kind === "tool") return new ToolCallView();
    if (segment.kind === "thinking") return new ThinkingView();
    if (segment.kind === "notice") return new NoticeView();
    if (segment.kind === "approval") return new ApprovalCard(segment, (approval, ...reply) => this.#actions.answer(this.#turn, approval, ...reply));
    return new LiveTextView();
  }

  /** Nothing on the page moves by itself: say that the turn is still at work. */
  #isQuiet(turn) {
    const last = turn.segments.at(-1);
    if (turn.state === "stopping" || !last || last.kind === "notice") return true;
    if (last.kind === "tool") return !isOpen(last);
    return last.kind === "approval" && last.decision !== null;
  }

  #drawWorking(key) {
    setText(this.#working.lastChild, t(key));
    return this.#working;
  }

  #drawMemory(turn) {
    if (this.#memory.shown !== turn.memory) this.#memory = { shown: turn.memory, element: memoryChip(turn.memory) };
    return this.#memory.element;
  }

  #drawEnd(turn) {
    this.#end ??= [
      turn.result.reply ? el("div", { class: "prose reply" }, renderProse(turn.result.reply)) : null,
      outcomeLine(turn.result, this.#actions.openLog),
    ];
    return this.#end;
  }
}
