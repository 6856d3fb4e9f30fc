// The dialog in which a person chooses a conversation's memory settings; the model cannot.

import { openDialog } from "/static/dialog.js";
import { el, setText } from "/static/dom.js";
import { ErrorLine } from "/static/error-line.js";
import { t } from "/static/i18n.js";
import { icon } from "/static/icons.js";
import { changeBetween, toSettings } from "/static/memory-settings.js";
import { readReadiness } from "/static/routes.js";

// What the tools of case memory take.
const MAX_LABEL_CHARS = 120;

function switchRow(id, name, means, isOn) {
  const input = el("input", { class: "switch", id, type: "checkbox", role: "switch", checked: isOn, "aria-labelledby": `${id}-name`, "aria-describedby": `${id}-means`, "data-testid": id });
  const row = el("label", { class: "switch-row" },
    el("span", { class: "switch-words" },
      el("span", { class: "switch-name", id: `${id}-name` }, name),
      el("span", { class: "switch-means", id: `${id}-means` }, means)),
    input);
  return { input, row };
}

function labelField(id, name, placeholder, value) {
  const input = el("input", { id, type: "text", maxlength: MAX_LABEL_CHARS, autocomplete: "off", autocapitalize: "off", spellcheck: "false", placeholder, "aria-describedby": "memory-place-means", "data-testid": id });
  input.value = value;
  return { input, row: el("label", { class: "field", for: id }, el("span", {}, name), input) };
}

function note(name, words) {
  return el("p", { class: "memory-note" }, icon(name), el("span", {}, words));
}

/** Says so where what is chosen here has no effect now. */
async function tellWhereMemoryIsGone(place) {
  const { parts } = await readReadiness().catch(() => ({}));
  if (parts?.memory?.state === "unavailable") place.replaceChildren(note("alert", t("memory_unavailable")));
}

class MemoryForm {
  #before;
  #isSaving = false;
  #errors = el("div", { class: "memory-errors" });
  #error = new ErrorLine(this.#errors);
  #enabled;
  #cases;
  #app;
  #environment;
  #cancel = el("button", { class: "button", type: "button", "data-testid": "memory-cancel" }, t("cancel"));
  #save = el("button", { class: "button primary", type: "submit", "data-testid": "memory-save" }, t("save"));
  #gone = el("div", { role: "status" });
  element;

  constructor(settings, isBusy) {
    this.#before = settings;
    this.#enabled = switchRow("memory-enabled", t("memory_short"), t("memory_means"), settings.enabled);
    this.#cases = switchRow("case-memory", t("memory_cases_short"), t("memory_cases_mean"), settings.caseMemory);
    this.#app = labelField("app-code", t("app"), t("any_app"), settings.appCode);
    this.#environment = labelField("environment", t("environment"), t("any_environment"), settings.environment);
    this.element = el("form", { class: "dialog-body memory-form", "data-testid": "memory-form" },
      el("h2", {}, t("memory_title")),
      this.#enabled.row,
      el("div", { class: "memory-cases" },
        this.#cases.row,
        el("div", { class: "memory-place" }, this.#app.row, this.#environment.row),
        el("p", { class: "memory-hint", id: "memory-place-means" }, t("memory_place_means"))),
      el("div", {}, this.#gone, note(isBusy ? "clock" : "info", t(isBusy ? "memory_while_busy" : "memory_counts"))),
      this.#errors,
      el("div", { class: "dialog-actions" }, this.#cancel, this.#save));
    tellWhereMemoryIsGone(this.#gone);
  }

  /** What is to be changed, null where nothing is. */
  get change() {
    return changeBetween(this.#before, toSettings({
      memory: { enabled: this.#enabled.input.checked, case_memory: this.#cases.input.checked },
      app_code: this.#app.input.value,
      environment: this.#environment.input.value,
      model: this.#before.model,
      project_id: this.#before.projectId,
    }));
  }

  /** `close()` leaves; `save(change)` resolves once it is done; `isOpen()`: whoever asked is still looking. */
  listen({ close, save, isOpen, failedLater }) {
    this.#cancel.addEventListener("click", close);
    this.element.addEventListener("keydown", (event) => {
      // Enter that confirms an input method's choice is no wish to save.
      if (event.key === "Enter" && (event.isComposing || event.keyCode === 229)) event.preventDefault();
    });
    this.element.addEventListener("submit", async (event) => {
      event.preventDefault();
      if (this.#isSaving) return;
      const { change } = this;
      if (!change) {
        close();
        return;
      }
      this.#showSaving(true);
      try {
        await save(change);
        close();
      } catch (error) {
        if (isOpen()) this.#error.show(error);
        else failedLater(error, change);
      }
      this.#showSaving(false);
    });
  }

  #showSaving(isSaving) {
    this.#isSaving = isSaving;
    if (isSaving) this.#error.clear();
    setText(this.#save, t(isSaving ? "saving" : "save"));
    // Not `disabled`, which would take the focus away.
    this.#save.setAttribute("aria-disabled", String(isSaving));
  }
}

/**
 * `save(change)` takes a body of `changeBetween`. An error is told in the dialog, and nothing typed is
 * lost; where the dialog was closed meanwhile, `failedLater(error, change)` hears of it.
 */
export function openMemoryDialog({ settings, isBusy, save, failedLater, closed }) {
  const form = new MemoryForm(settings, isBusy);
  const dialog = openDialog({
    label: t("memory_title"), className: "memory-dialog", content: form.element, onClose: closed,
    mayLeave: () => form.change === null,
  });
  form.listen({ close: () => dialog.close(), save, isOpen: () => dialog.open, failedLater });
  return dialog;
}
