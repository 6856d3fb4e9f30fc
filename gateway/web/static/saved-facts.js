// What a turn saved in memory and what it forgot, each with an undo. Hidden if it did neither.

import { el, setText } from "/static/dom.js";
import { t } from "/static/i18n.js";
import { icon } from "/static/icons.js";
import { findGoneFacts, writeFact } from "/static/memory-routes.js";
import { forgetItem } from "/static/routes.js";
import { showHidden } from "/static/visible.js";

let asked = null;

/** Which facts are gone: one question for all that is drawn at the same time. */
function goneFacts() {
  asked ??= Promise.resolve().then(() => {
    asked = null;
    return findGoneFacts();
  });
  return asked;
}

/** `takeBack(item)` undoes what happened to an item; without it nothing can. */
function changedItem(kind, item, takeBack) {
  const state = el("span", { class: "memory-why", role: "status" });
  const undo = el("button", { class: "link-button", type: "button", "data-testid": `${kind}-undo`, onclick: undone }, icon("undo"), t("saved_undo"));
  const earlier = (item.earlier ?? []).flat(Infinity).map((text) => el("span", { class: "memory-why", dir: "auto" }, t("forgotten_earlier", { text: showHidden(text) })));
  const row = el("li", { "data-testid": `${kind}-item` }, el("span", { class: "memory-title", dir: "auto" }, showHidden(item.title || t("kind_fact"))), ...earlier, takeBack && undo, state);

  async function undone() {
    undo.disabled = true;
    try {
      await takeBack(item);
      undo.remove();
      setText(state, t("saved_undone"));
      row.classList.add("is-undone");
    } catch (error) {
      undo.disabled = false;
      setText(state, error.message);
    }
  }

  function gone() {
    row.classList.add("is-undone");
    undo.replaceWith(el("span", { class: "memory-why" }, t("memory_gone_since")));
  }

  if (kind === "saved" && item.kind === "fact") goneFacts().then((isGone) => { if (isGone(item.id) && !undo.disabled) gone(); }).catch(() => {});
  return row;
}

const forgetAgain = (item) => forgetItem(item.id);
const tellAgain = ({ text, project_id: projectId, lasting, earlier }) => writeFact(text, { projectId, lasting, earlier });

function chip(kind, items, undoOf) {
  return el("details", { class: "chip memory saved", open: true, "data-testid": kind },
    el("summary", {}, icon("book"), el("span", {}, t(`${kind}_count`, { count: items.length }))),
    el("div", { class: "chip-body" }, el("ul", {}, items.map((item) => changedItem(kind, item, undoOf(item))))));
}

/** The lists as elements: what the turn saved, and what it forgot. */
export function memoryChanges(memory) {
  const { saved = [], forgotten = [] } = memory ?? {};
  return [
    saved.length && chip("saved", saved, () => forgetAgain),
    forgotten.length && chip("forgotten", forgotten, (item) => item.text && tellAgain),
  ].filter(Boolean);
}
