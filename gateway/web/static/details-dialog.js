// The details of a conversation: model and project to choose, what it has used, and the whole of it to take away.

import { copyText } from "/static/copy.js";
import { openDialog } from "/static/dialog.js";
import { el, setText } from "/static/dom.js";
import { download } from "/static/download.js";
import { ErrorLine } from "/static/error-line.js";
import { formatCount } from "/static/format.js";
import { t } from "/static/i18n.js";
import { icon } from "/static/icons.js";
import { changeBetween } from "/static/memory-settings.js";
import { exportConversation, readUsage } from "/static/routes.js";
import { contextPercent, contextWords, formatCost } from "/static/usage.js";
import { workTreeLine } from "/static/work-tree.js";

const MAX_CHARS = 200;
// The names by which the agent program knows the latest model of each size.
const MODELS = ["opus", "sonnet", "haiku"];
const FILES = { markdown: ["md", "text/markdown"], jsonl: ["jsonl", "application/x-ndjson"] };

function field(id, name, means, attributes) {
  const input = el("input", { id, type: "text", maxlength: MAX_CHARS, autocomplete: "off", autocapitalize: "off", spellcheck: "false", "aria-describedby": `${id}-means`, "data-testid": id, ...attributes });
  const row = el("div", { class: "details-field" }, el("label", { class: "field", for: id }, el("span", {}, name), input), el("p", { class: "memory-hint", id: `${id}-means` }, means));
  return { input, row };
}

const figure = (name, value) => el("div", { class: "figure" }, el("dt", {}, name), el("dd", {}, value));

class Details {
  #conversation;
  #before;
  #model;
  #project;
  #figures = el("dl", { class: "figures", "data-testid": "usage" });
  #tree = el("div", {});
  #errors = el("div", { class: "memory-errors" });
  #error = new ErrorLine(this.#errors);
  #save = el("button", { class: "button primary", type: "submit", "data-testid": "details-save" }, t("save"));
  #cancel = el("button", { class: "button", type: "button" }, t("cancel"));
  element;

  constructor(conversation, serverModel) {
    this.#conversation = conversation;
    this.#before = conversation.settings;
    const models = new Set([...MODELS, ...conversation.turns.map((turn) => turn.result?.model).filter(Boolean)]);
    this.#model = field("details-model", t("model"), t("model_means"), { list: "details-models", placeholder: serverModel ? t("model_usual", { model: serverModel }) : "" });
    this.#project = field("details-project", t("project"), t("project_means"), { placeholder: t("project_none") });
    this.#model.input.value = this.#before?.model ?? "";
    this.#project.input.value = this.#before?.projectId ?? "";
    this.element = el("form", { class: "dialog-body details-form" },
      el("h2", {}, t("details_title")),
      this.#model.row, el("datalist", { id: "details-models" }, [...models].map((model) => el("option", { value: model }))),
      this.#project.row,
      conversation.id ? el("div", { class: "details-used" }, this.#figures, this.#context()) : null,
      conversation.id ? this.#takeAway() : null,
      this.#tree,
      this.#errors,
      el("div", { class: "dialog-actions" }, this.#cancel, this.#save));
  }

  #context() {
    const { context } = this.#conversation;
    return context && el("div", { class: "context-use", "data-testid": "context-use" },
      el("progress", { max: 100, value: contextPercent(context), "aria-label": t("context") }), el("span", {}, contextWords(context)));
  }

  #takeAway() {
    const button = (words, name, testId, act) => el("button", { class: "button small", type: "button", "data-testid": testId, onclick: (event) => this.#try(() => act(event.currentTarget)) }, icon(name), el("span", {}, t(words)));
    return el("div", { class: "details-export" },
      button("export_markdown", "download", "export-markdown", () => this.#export("markdown")),
      button("export_jsonl", "download", "export-jsonl", () => this.#export("jsonl")),
      button("copy_conversation", "copy", "copy-conversation", async (pressed) => {
        const isCopied = await copyText(await exportConversation(this.#conversation.id, "markdown"));
        if (isCopied) setText(pressed.lastChild, t("copied"));
      }));
  }

  async #export(format) {
    const [suffix, type] = FILES[format];
    download(`${this.#conversation.id}.${suffix}`, await exportConversation(this.#conversation.id, format), type);
  }

  async #try(act) {
    this.#error.clear();
    try {
      await act();
    } catch (error) {
      this.#error.show(error);
    }
  }

  async readUsage(signal) {
    if (!this.#conversation.id) return;
    try {
      const used = await readUsage(this.#conversation.id, signal);
      this.#figures.replaceChildren(...[
        figure(t("used_turns"), formatCount(used.turns)),
        figure(t("used_read"), formatCount(used.read)),
        figure(t("used_written"), formatCount(used.written)),
        used.cost_usd ? figure(t("used_cost"), formatCost(used.cost_usd)) : null,
      ].filter(Boolean));
    } catch (error) {
      if (!signal.aborted) this.#error.show(error);
    }
  }

  async readTree(signal) {
    if (!this.#conversation.id) return;
    try {
      // Merging and throwing away change what the line says.
      const line = await workTreeLine(this.#conversation.id, signal, () => this.readTree(signal));
      const hadFocus = this.#tree.contains(document.activeElement);
      this.#tree.replaceChildren(...[line].filter(Boolean));
      if (hadFocus) (this.#tree.querySelector("button") ?? this.#cancel).focus();
    } catch (error) {
      if (!signal.aborted) this.#error.show(error);
    }
  }

  /** What is to be changed, null where nothing is. */
  get change() {
    return this.#before && changeBetween(this.#before, { ...this.#before, model: this.#model.input.value.trim(), projectId: this.#project.input.value.trim() });
  }

  listen(close) {
    this.#cancel.addEventListener("click", close);
    this.element.addEventListener("keydown", (event) => {
      // Enter that confirms an input method's choice is no wish to save.
      if (event.key === "Enter" && (event.isComposing || event.keyCode === 229)) event.preventDefault();
    });
    this.element.addEventListener("submit", (event) => {
      event.preventDefault();
      const { change } = this;
      this.#try(async () => {
        if (change) await this.#conversation.choose(change);
        close();
      });
    });
  }
}

export function openDetails(conversation, { serverModel, closed }) {
  const reading = new AbortController();
  const details = new Details(conversation, serverModel);
  const dialog = openDialog({
    label: t("details_title"), className: "memory-dialog details-dialog", content: details.element, mayLeave: () => details.change === null,
    onClose: () => {
      reading.abort();
      closed();
    },
  });
  details.listen(() => dialog.close());
  details.readUsage(reading.signal);
  details.readTree(reading.signal);
  return dialog;
}
