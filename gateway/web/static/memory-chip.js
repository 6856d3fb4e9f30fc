// The memory of a turn: what was injected, held back or unavailable. Hidden if there is none.

import { el } from "/static/dom.js";
import { t, wordsFor } from "/static/i18n.js";
import { icon } from "/static/icons.js";
import { showHidden } from "/static/visible.js";

function heading(memory) {
  return [
    memory.injected?.length ? t("memory_injected", { count: memory.injected.length }) : null,
    memory.suppressed?.length ? t("memory_suppressed", { count: memory.suppressed.length }) : null,
    memory.degraded?.length ? t("memory_degraded") : null,
  ].filter(Boolean).join(" · ");
}

function injectedItem(item) {
  const source = [item.kind, item.source].filter(Boolean).join(" · ");
  return el("li", {},
    el("span", { class: "memory-title" }, showHidden(item.title || item.id)),
    source && el("span", { class: "memory-source" }, showHidden(source)),
    item.why && el("span", { class: "memory-why" }, showHidden(t("memory_why", { why: item.why }))));
}

const suppressedItem = (item) => el("li", {},
  el("span", { class: "memory-title" }, showHidden(item.title || item.id)),
  el("span", { class: "memory-why" }, showHidden(wordsFor("reason", item.reason))));

const degradedItem = (part) => el("li", {}, el("span", { class: "memory-title" }, showHidden(String(part).replaceAll("_", " "))));

function group(words, items, draw) {
  return items?.length ? [el("h4", {}, words), el("ul", {}, items.map(draw))] : [];
}

/** The chip as an element, or null where memory said nothing. */
export function memoryChip(memory) {
  const words = memory ? heading(memory) : "";
  if (!words) return null;
  return el("details", { class: "chip memory", "data-testid": "memory" },
    el("summary", {}, icon("book"), el("span", {}, words)),
    el("div", { class: "chip-body" },
      group(t("memory_shown"), memory.injected, injectedItem),
      group(t("memory_held_back"), memory.suppressed, suppressedItem),
      group(t("memory_parts_missing"), memory.degraded, degradedItem)));
}
