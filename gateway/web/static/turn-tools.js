// What a person can do with a turn: copy, edit and send again, retry, branch off, go to another branch.

import { copyButton } from "/static/copy.js";
import { el, place, setText } from "/static/dom.js";
import { keepEdit, recallEdit } from "/static/drafts.js";
import { t } from "/static/i18n.js";
import { icon } from "/static/icons.js";
import { MessageEditor } from "/static/message-editor.js";

function toolButton(name, words, testId, onclick) {
  return el("button", { class: "icon-button small", type: "button", title: t(words), "aria-label": t(words), "data-testid": testId, onclick }, icon(name));
}

/** The buttons at the end of a reply. */
export const replyTools = (turn, actions) => [
  turn.text !== null && toolButton("retry", "retry", "retry-turn", () => actions.resend(turn, turn.text)),
  toolButton("branch", "branch_here", "branch-here", () => actions.branch(turn)),
];

/** Which of the branches that part here is open, with buttons to those before and after it. */
export class BranchSwitch {
  #actions;
  #place = el("span", { class: "branch-place", "data-testid": "branch-place" });
  #before = el("button", { class: "icon-button small", type: "button", title: t("branch_before"), "aria-label": t("branch_before"), "data-testid": "branch-before", onclick: () => this.#go(-1) }, icon("chevron"));
  #after = el("button", { class: "icon-button small", type: "button", title: t("branch_after"), "aria-label": t("branch_after"), "data-testid": "branch-after", onclick: () => this.#go(1) }, icon("chevron"));
  #ways = [];
  element = el("span", { class: "branch-switch", role: "group", "aria-label": t("branches") }, this.#before, this.#place, this.#after);

  constructor(actions) {
    this.#actions = actions;
  }

  get #at() {
    return this.#ways.indexOf(null);
  }

  #go(step) {
    const way = this.#ways[this.#at + step];
    if (way) this.#actions.openBranch(way);
  }

  /** `ways`: the branches in order, null for the open one. Null where nothing parts. */
  draw(ways) {
    this.#ways = ways;
    if (ways.length < 2) return null;
    setText(this.#place, `${this.#at + 1} / ${ways.length}`);
    this.#before.disabled = this.#at === 0;
    this.#after.disabled = this.#at === ways.length - 1;
    return this.element;
  }
}

/** A message's text, or its editor, and the buttons below it. */
export class MessageTools {
  #turn;
  #actions;
  #switch;
  #text;
  #editor = null;
  #isSending = false;
  #copy;
  #edit = toolButton("pencil", "edit_message", "edit-message", () => this.#open());
  #row = el("div", { class: "turn-tools user-tools" });

  /** `actions`: resend(turn, text), branch(turn), openBranch(branch), waysAt(turn). */
  constructor(turn, actions, text) {
    this.#turn = turn;
    this.#actions = actions;
    this.#text = text;
    this.#copy = copyButton(() => turn.text);
    this.#switch = new BranchSwitch(actions);
  }

  get body() {
    return this.#editor?.element ?? this.#text;
  }

  draw() {
    const canEdit = this.#turn.state === "completed" && !this.#editor;
    place(this.#row, [this.#switch.draw(this.#actions.waysAt(this.#turn)), this.#editor ? null : this.#copy, canEdit ? this.#edit : null]);
    return this.#row;
  }

  #open() {
    const { turnId, text: original } = this.#turn;
    this.#editor = new MessageEditor(recallEdit(turnId) ?? original, {
      edited: (text) => keepEdit(turnId, text === original ? "" : text),
      send: (text) => this.#send(text),
      cancel: () => this.#close(),
    });
    this.#text.replaceWith(this.#editor.element);
    this.draw();
    this.#editor.focus();
  }

  /** The editor stays: what was written is not lost if the branch for it cannot be made. */
  async #send(text) {
    if (this.#isSending) return;
    this.#isSending = true;
    await this.#actions.resend(this.#turn, text);
    this.#isSending = false;
  }

  #close() {
    keepEdit(this.#turn.turnId, "");
    this.#editor.element.replaceWith(this.#text);
    this.#editor = null;
    this.draw();
    this.#edit.focus();
  }
}
