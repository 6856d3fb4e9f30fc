// An item of memory in a person's words: its kind, where it comes from, and which words it shares with a message.

import { addressOf } from "/static/address.js";
import { el } from "/static/dom.js";
import { formatFull } from "/static/format.js";
import { language, t, wordsFor } from "/static/i18n.js";
import { showHidden } from "/static/visible.js";

const MIN_LATIN_CHARS = 4;
const MAX_SHARED = 4;

export const kindWords = (kind) => wordsFor("kind", kind);

/** Where an item comes from, as a link where there is something to open; null where nothing is known. */
export function sourceOf(item) {
  if (item.conversation_id) {
    return el("a", { class: "memory-source", href: addressOf(item.conversation_id, item.turn_id ?? null), "data-testid": "memory-source" }, t("source_conversation"));
  }
  const words = item.kind === "note" ? showHidden(item.source) : item.kind === "fact" ? t("source_person") : "";
  return words ? el("span", { class: "memory-source" }, words) : null;
}

export const dateOf = (item) => (item.occurred_at ? el("span", { class: "memory-source" }, formatFull(item.occurred_at)) : null);

// Making it takes long, and the page starts without.
let segmenter = null;

function wordsOf(text) {
  if ("Segmenter" in Intl) segmenter ??= new Intl.Segmenter(language, { granularity: "word" });
  const words = segmenter ? [...segmenter.segment(text)].filter((part) => part.isWordLike).map((part) => part.segment) : text.split(/[^\p{L}\p{N}]+/u);
  return words.map((word) => word.toLocaleLowerCase(language)).filter((word) => word.length >= (/^[\p{Script=Latin}\d]+$/u.test(word) ? MIN_LATIN_CHARS : 2));
}

/** The words that a message and an item have in common, the longest first, in the message's spelling. */
export function sharedWords(message, text) {
  const theirs = new Set(wordsOf(text));
  const shared = new Set(wordsOf(message).filter((word) => theirs.has(word)));
  return [...shared].sort((one, other) => other.length - one.length).slice(0, MAX_SHARED);
}
