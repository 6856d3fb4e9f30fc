// Modal dialogs based on <dialog>, which traps the focus, closes on Escape and restores the focus.

import { el } from "/static/dom.js";
import { t } from "/static/i18n.js";
import { icon } from "/static/icons.js";

const FIELDS = "textarea, input:not([type=search], [type=checkbox], [type=radio], [type=file])";

/** True if nothing has been written into the fields of `content`. */
export const isUnwritten = (content) => [...content.querySelectorAll(FIELDS)].every((field) => field.value === field.defaultValue);

/** Fill a field with what is stored: a dialog that holds nothing else may be left. */
export function fillStored(field, text) {
  field.defaultValue = text;
  field.value = text;
}

/**
 * Show a dialog with `content`; it leaves the document when it closes. Escape always closes it, a click
 * beside it only where `mayLeave()` says that nothing would be lost, usually where nothing has been written into its fields.
 */
export function openDialog({ label, className = "", content, onClose = () => {}, mayLeave = () => isUnwritten(content) }) {
  const dialog = el("dialog", { class: `dialog ${className}`, "aria-label": label }, content);
  dialog.addEventListener("close", () => {
    dialog.remove();
    onClose();
  });
  // Text selected with the pointer may end beside the dialog: only a press that began there, too, is one beside it.
  let isPressedBeside = false;
  dialog.addEventListener("pointerdown", (event) => { isPressedBeside = event.target === dialog; });
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog && isPressedBeside && mayLeave()) dialog.close();
  });
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}

/** A dialog's title and, beside it, the button that closes it. */
export const dialogHead = (title, close) => el("div", { class: "dialog-head" }, el("h2", {}, title),
  el("button", { class: "icon-button", type: "button", title: t("close"), "aria-label": t("close"), onclick: close }, icon("close")));

/** Ask before something that cannot be undone; the safe answer has the focus. */
export function confirmDialog({ title, body, confirm }) {
  return new Promise((resolve) => {
    let isConfirmed = false;
    const cancel = el("button", { class: "button", type: "button", autofocus: true }, t("cancel"));
    const proceed = el("button", { class: "button danger", type: "button", "data-testid": "confirm" }, confirm);
    const content = el("div", { class: "dialog-body" }, el("h2", {}, title), el("p", {}, body), el("div", { class: "dialog-actions" }, cancel, proceed));
    const dialog = openDialog({ label: title, content, onClose: () => resolve(isConfirmed) });
    cancel.addEventListener("click", () => dialog.close());
    proceed.addEventListener("click", () => {
      isConfirmed = true;
      dialog.close();
    });
  });
}
