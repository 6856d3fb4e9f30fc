// Draws one turn: the message, the steps, the reply and the outcome. `update` may be called at any rate.

import { el, place, setText } from "/static/dom.js";
import { formatFull } from "/static/format.js";
import { t } from "/static/i18n.js";
import { icon } from "/static/icons.js";
import { LiveText } from "/static/live-text.js";
import { memoryChip } from "/static/memory-chip.js";
import { noticeLine, outcomeLine, showNotices } from "/static/outcome.js";
import { messagePictures } from "/static/message-pictures.js";
import { proseElement } from "/static/prose.js";
import { readToolCall } from "/static/routes.js";
import { memoryChanges } from "/static/saved-facts.js";
import { MessageTools, replyTools } from "/static/turn-tools.js";
import { ToolCallView } from "/static/tool-call.js";
import { todoList } from "/static/todo-list.js";
import { callsBelow, isOpen } from "/static/turn.js";
import { showHidden } from "/static/visible.js";

// A finished turn with more tool calls in a row than this shows their number, and the calls on request.
const MAX_PLAIN_TOOLS = 6;
// A message of more characters may be higher than its place on a phone.
const MAX_PLAIN_CHARS = 400;
const FOLDABLE = new Set(["tool", "thinking"]);

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
  text = new LiveText();
  element = this.text.element;

  update(segment) {
    this.text.update(segment.text);
  }
}

/** Finished text: the model's, or the gateway's own closing words. */
class SaidView {
  element;

  /** `written`: texts of this turn as `proseElement` takes them. */
  constructor({ text, isClosing }, written) {
    this.element = proseElement(text, written);
    this.element.className = isClosing ? "prose closing" : "prose reply";
    if (isClosing) this.element.dataset.testid = "closing";
  }

  update() {}
}

/** Split into stretches of work and everything between them, in order. */
function stretches(segments) {
  const found = [];
  for (const segment of segments) {
    const isWork = FOLDABLE.has(segment.kind);
    if (isWork && found.at(-1)?.isWork) found.at(-1).segments.push(segment);
    else found.push({ isWork, segments: [segment] });
  }
  return found;
}

export class TurnView {
  #turn;
  #actions;
  #views = new Map();
  #written = [];
  #userText = el("div", { class: "user-text", dir: "auto" });
  #pictures;
  #sentBy = null;
  #queueNote = el("span", {});
  #queueLine;
  #user;
  #steps = el("div", { class: "steps" });
  #tools;
  #working = el("div", { class: "working" }, el("span", { class: "dots" }, el("i"), el("i"), el("i")), el("span", {}));
  #assistant = el("div", { class: "assistant", role: "group", "aria-label": t("assistant"), "data-testid": "message-assistant" });
  #memory = { of: null, version: null, element: null };
  #folds = new Map();
  #end = { of: null, version: null, parts: [] };
  #tasks = { of: null, element: null };
  element = el("article", { class: "turn" });

  /** `actions`: takeBack(turn), answer(turn, approval, reply), openLog(logFile), and those of `MessageTools`. */
  constructor(turn, actions) {
    this.#turn = turn;
    this.#actions = actions;
    const takeBack = el("button", { class: "link-button", type: "button", "data-testid": "take-back", onclick: () => actions.takeBack(turn) }, icon("undo"), t("take_back"));
    this.#queueLine = el("div", { class: "queue-line" }, icon("clock"), this.#queueNote, takeBack);
    this.#tools = new MessageTools(turn, actions, this.#userText);
    this.#user = el("div", { class: "user", role: "group", "data-testid": "message-user", "aria-label": t("you") }, this.#userText);
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
    // What may be cut off is scrolled by the keyboard, too.
    if (turn.text.length > MAX_PLAIN_CHARS) this.#userText.tabIndex = 0;
    this.#user.title = formatFull(turn.createdAt);
    const isQueued = turn.state === "queued";
    if (isQueued) this.element.dataset.testid = "queued-item";
    else delete this.element.dataset.testid;
    setText(this.#queueNote, turn.position ? t("queued_at", { position: turn.position }) : t("queued"));
    this.#queueLine.querySelector("button").disabled = turn.takingBack;
    const sending = turn.state === "sending" ? this.#drawWorking("sending") : null;
    this.#pictures ??= [messagePictures(turn.text)];
    if (turn.schedule) this.#sentBy ??= el("div", { class: "queue-line", "data-testid": "sent-by-schedule" }, icon("clock"), t("sent_by_schedule", { name: showHidden(turn.schedule.name) }));
    place(this.#user, [this.#sentBy, this.#tools.body, ...this.#pictures, isQueued ? this.#queueLine : sending, isQueued || sending ? null : this.#tools.draw()]);
    return this.#user;
  }

  #drawAssistant(turn) {
    this.#drawSegments(turn);
    const parts = [this.#drawMemory(turn), this.#steps.childNodes.length ? this.#steps : null, this.#drawTasks(turn)];
    if (turn.state === "completed") parts.push(...this.#drawEnd(turn));
    else parts.push(this.#isQuiet(turn) ? this.#drawWorking(turn.state === "stopping" ? "stopping" : "working") : null);
    place(this.#assistant, parts);
    return this.#assistant;
  }

  #drawSegments(turn) {
    const kept = new Set(turn.segments);
    for (const segment of this.#views.keys()) if (!kept.has(segment)) this.#views.delete(segment);
    turn.segments.forEach((segment, index) => {
      if (!this.#views.has(segment)) this.#views.set(segment, this.#viewOf(segment));
      this.#views.get(segment).update(segment, turn.state !== "completed" && index === turn.segments.length - 1);
    });
    const isOver = turn.state === "completed";
    const draw = (segments) => (isOver ? this.#foldLong(segments) : this.#elementsOf(segments));
    const below = callsBelow(turn);
    for (const [parent, calls] of below) this.#views.get(parent).nest(draw(calls));
    const nested = new Set([...below.values()].flat());
    const own = this.#told(turn).filter((segment) => !nested.has(segment));
    place(this.#steps, stretches(own).flatMap(({ segments }) => draw(segments)));
  }

  /** Where no text came of it because a call failed, the calls and the outcome say so already. */
  #told(turn) {
    if (turn.result?.outcome !== "tool_failed" || !turn.result.steps) return turn.segments;
    return turn.segments.filter((segment) => !segment.isClosing);
  }

  #elementsOf(segments) {
    return segments.map((segment) => this.#views.get(segment).element);
  }

  #foldLong(segments) {
    const tools = segments.filter((segment) => segment.kind === "tool");
    if (tools.length <= MAX_PLAIN_TOOLS) return this.#elementsOf(segments);
    if (!this.#folds.has(segments[0])) {
      const bad = tools.filter((tool) => tool.status !== "ok").length;
      const words = bad ? t("steps_bad", { count: tools.length, bad }) : t("steps", { count: tools.length });
      this.#folds.set(segments[0], el("details", { class: "steps-fold", "data-testid": "steps", open: bad > 0 },
        el("summary", {}, icon("chevron"), words), el("div", { class: "steps" }, this.#elementsOf(segments))));
    }
    return [this.#folds.get(segments[0])];
  }

  #viewOf(segment) {
    if (segment.kind === "tool") return new ToolCallView((tool, isWhole) => this.#readCall(tool, isWhole), (approval, reply) => this.#actions.answer(this.#turn, approval, reply));
    if (segment.kind === "said") return new SaidView(segment, this.#written);
    if (segment.kind === "thinking") return new ThinkingView();
    if (segment.kind === "notice") return new NoticeView();
    const view = new LiveTextView();
    this.#written.push(view.text);
    return view;
  }

  /** A call of a turn that was over when it was read: its input and output are asked for when it is opened. */
  #readCall(tool, isWhole) {
    // Version 1.0 gave calls no number, but kept them in order.
    const place = this.#turn.segments.filter(({ kind }) => kind === "tool").indexOf(tool) + 1;
    return readToolCall(this.#turn.result.conversation_id, this.#turn.turnId, tool.index ?? place, isWhole);
  }

  /** Nothing on the page moves by itself: say that the turn is still at work. */
  #isQuiet(turn) {
    const last = turn.segments.at(-1);
    if (turn.state === "stopping" || !last || last.kind === "notice") return true;
    return last.kind === "tool" && !isOpen(last);
  }

  #drawWorking(key) {
    setText(this.#working.lastChild, t(key));
    return this.#working;
  }

  #drawMemory(turn) {
    const { memory } = turn;
    if (this.#memory.of !== memory) {
      // The end of the turn tells it once more, and somebody may have opened it.
      const version = JSON.stringify([memory?.injected, memory?.suppressed, memory?.degraded]);
      this.#memory = { of: memory, version, element: version === this.#memory.version ? this.#memory.element : memoryChip(memory, turn.text) };
    }
    return this.#memory.element;
  }

  #drawTasks({ tasks }) {
    if (this.#tasks.of !== tasks) {
      const entries = tasks.map(({ id, subject, status }) => ({ text: subject ?? t("task_number", { id }), state: status }));
      this.#tasks = { of: tasks, element: tasks.length ? todoList(entries) : null };
    }
    return this.#tasks.element;
  }

  #drawEnd(turn) {
    const { result } = turn;
    if (this.#end.of === result) return this.#end.parts;
    const { notices, ...rest } = result;
    const version = JSON.stringify(rest);
    // What a check of the answer has found comes while somebody is at the buttons.
    if (version === this.#end.version) showNotices(this.#end.parts.at(-1), result);
    else this.#end = { version, parts: [...memoryChanges(result.memory), outcomeLine(result, this.#actions.openLog, replyTools(turn, this.#actions))] };
    this.#end.of = result;
    return this.#end.parts;
  }
}
