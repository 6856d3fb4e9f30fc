// The page's language: the one that the person chose, else Chinese if the browser prefers it, else English.

import { preferences } from "/static/preferences.js";
import en from "/static/words/en.js";
import zh from "/static/words/zh.js";

export const language = (preferences.language === "auto" ? navigator.language ?? "en" : preferences.language).toLowerCase().startsWith("zh") ? "zh-CN" : "en";
const words = language === "zh-CN" ? zh : en;

/** The words of `key`, with `{name}` filled in from `values`. Lists come back as they are. */
export function t(key, values = {}) {
  const text = words[key] ?? en[key] ?? key;
  if (typeof text !== "string") return text;
  return text.replace(/\{(\w+)\}/g, (whole, name) => (name in values ? String(values[name]) : whole));
}

/** Words for a code of the API (`outcome_answered`), or the code itself where none are known. */
export function wordsFor(prefix, code) {
  return words[`${prefix}_${code}`] ?? en[`${prefix}_${code}`] ?? String(code ?? "").replaceAll("_", " ");
}

/** Fill the static page in. */
export function applyWords(root = document) {
  document.documentElement.lang = language;
  for (const node of root.querySelectorAll("[data-words]")) node.textContent = t(node.dataset.words);
  for (const node of root.querySelectorAll("[data-words-placeholder]")) node.placeholder = t(node.dataset.wordsPlaceholder);
  for (const node of root.querySelectorAll("[data-words-label]")) {
    node.setAttribute("aria-label", t(node.dataset.wordsLabel));
    if (node.tagName === "BUTTON") node.title = t(node.dataset.wordsLabel);
  }
}
