// The memory of a turn: what was injected, held back or unavailable. Hidden if there is none.

import { el } from "/static/dom.js";
import { forgetButton } from "/static/forget-button.js";
import { t, wordsFor } from "/static/i18n.js";
import { icon } from "/static/icons.js";
import { readItem } from "/static/memory-routes.js";
import { dateOf, kindWords, sharedWords, sourceOf } from "/static/memory-words.js";
import { showHidden } from "/static/visible.js";

const MAX_TEXT_CHARS = 400;

function heading(memory) {
  return [
    memory.injected?.length ? t("memory_injected", { count: memory.injected.length }) : null,
    memory.suppressed?.length ? t("memory_suppressed", { count: memory.suppressed.length }) : null,
    memory.degraded?.length ? t("memory_degraded") : null,
  ].filter(Boolean).join(" · ");
}

/** A text, the rest of a long one on request. */
export function clippedText(text) {
  const shown = el("span", {}, showHidden(text.slice(0, MAX_TEXT_CHARS)));
  if (text.length <= MAX_TEXT_CHARS) return el("div", { class: "memory-text", dir: "auto" }, shown);
  const more = el("button", { class: "link-button", type: "button" }, t("show_whole"));
  more.addEventListener("click", () => {
    shown.textContent = showHidden(text);
    more.remove();
  });
  return el("div", { class: "memory-text", dir: "auto" }, shown, "… ", more);
}

/** One line of the chip; `read` fills in the text once the chip is opened, and resolves to false if it could not. */
function injectedItem(item, message) {
  const text = el("div", { class: "memory-text quiet" }, t("loading"));
  const why = el("span", { class: "memory-why", title: showHidden(item.why ?? "") });
  const facts = el("div", { class: "memory-facts" }, el("span", { class: "memory-kind" }, kindWords(item.kind)), sourceOf(item), why);
  const row = el("li", { class: "memory-item", "data-testid": "memory-item" }, el("span", { class: "memory-title", dir: "auto" }, showHidden(item.title || kindWords(item.kind))), text, facts);

  async function read() {
    try {
      const whole = await readItem(item.id);
      const body = whole.body || whole.markdown || whole.title || "";
      const shared = sharedWords(message, `${whole.title ?? ""} ${body}`);
      why.textContent = shared.length ? t("memory_matched", { words: showHidden(shared.join(t("list_comma"))) }) : t("memory_meaning");
      text.replaceWith(clippedText(body));
      if (item.revision && whole.revision > item.revision) facts.append(el("span", { class: "memory-why" }, t("memory_changed_since")));
      facts.append(...[dateOf(whole)].filter(Boolean), forgetButton(item, () => row.classList.add("is-undone")));
      return true;
    } catch (error) {
      text.textContent = error.status === 404 ? t("memory_gone_since") : error.message;
      return false;
    }
  }

  return { row, read };
}

const suppressedItem = (item) => el("li", {},
  item.title && el("span", { class: "memory-title" }, showHidden(item.title)),
  el("span", { class: "memory-why" }, showHidden(wordsFor("reason", item.reason))));

const degradedItem = (part) => el("li", {}, el("span", { class: "memory-title" }, showHidden(wordsFor("degraded", part))));

function group(words, rows) {
  return rows?.length ? [el("h4", {}, words), el("ul", {}, rows)] : [];
}

/** The chip as an element, or null where memory said nothing. `message` is what the person wrote. */
export function memoryChip(memory, message = "") {
  const words = memory ? heading(memory) : "";
  if (!words) return null;
  const items = (memory.injected ?? []).map((item) => injectedItem(item, message ?? ""));
  const chip = el("details", { class: "chip memory", "data-testid": "memory" },
    el("summary", {}, icon("book"), el("span", {}, words)),
    el("div", { class: "chip-body" },
      group(t("memory_shown"), items.map(({ row }) => row)),
      group(t("memory_held_back"), memory.suppressed?.map(suppressedItem)),
      group(t("memory_parts_missing"), memory.degraded?.map(degradedItem))));
  const unread = [...items];
  chip.addEventListener("toggle", () => {
    if (!chip.open) return;
    for (const item of unread.splice(0)) item.read().then((isRead) => { if (!isRead) unread.push(item); });
  });
  return chip;
}
