// Prompts that a user keeps for later, in this browser.

import { owner } from "/static/storage.js";

const SHARED_KEY = "candor.prompts";
const MAX_PROMPTS = 100;

const keyOf = () => (owner() === null ? null : `${SHARED_KEY}.${owner()}`);

/** Prompts of a version that did not separate users go to the first user. */
function takeShared(key) {
  const shared = localStorage.getItem(SHARED_KEY);
  if (shared === null) return;
  if (localStorage.getItem(key) === null) localStorage.setItem(key, shared);
  localStorage.removeItem(SHARED_KEY);
}

/** The texts, the latest first; none until the gateway has named the user. */
export function savedPrompts() {
  try {
    const key = keyOf();
    if (key === null) return [];
    takeShared(key);
    const kept = JSON.parse(localStorage.getItem(key) ?? "[]");
    return Array.isArray(kept) ? kept.filter((text) => typeof text === "string") : [];
  } catch {
    return [];
  }
}

function keep(texts) {
  try {
    const key = keyOf();
    if (key === null) return false;
    localStorage.setItem(key, JSON.stringify(texts.slice(0, MAX_PROMPTS)));
    return true;
  } catch {
    return false;
  }
}

/** False where the browser keeps nothing. */
export const savePrompt = (text) => keep([text, ...savedPrompts().filter((other) => other !== text)]);

export const dropPrompt = (text) => keep(savedPrompts().filter((other) => other !== text));
