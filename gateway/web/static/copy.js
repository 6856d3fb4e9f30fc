// A button that copies text and confirms it for a moment.

import { el } from "/static/dom.js";
import { icon } from "/static/icons.js";
import { t } from "/static/i18n.js";

const SAID_MS = 1600;

/** Put text on the clipboard; false if the browser forbids it. */
export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Plain HTTP on another host has no clipboard; the selection command still works there.
    const field = el("textarea", { class: "visually-hidden", "aria-hidden": "true" });
    field.value = text;
    document.body.append(field);
    field.select();
    const copied = document.execCommand("copy");
    field.remove();
    return copied;
  }
}

export function copyButton(textOf) {
  const button = el("button", { class: "icon-button small", type: "button", title: t("copy"), "aria-label": t("copy") }, icon("copy"));
  button.addEventListener("click", async () => {
    if (!await copyText(textOf())) return;
    button.replaceChildren(icon("check"));
    button.setAttribute("aria-label", t("copied"));
    setTimeout(() => {
      button.replaceChildren(icon("copy"));
      button.setAttribute("aria-label", t("copy"));
    }, SAID_MS);
  });
  return button;
}
