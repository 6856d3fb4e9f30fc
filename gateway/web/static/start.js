// What a conversation that was not begun yet will begin with. It survives a reload, not the tab.

import { USUAL_SETTINGS } from "/static/memory-settings.js";
import { keep, recall } from "/static/storage.js";

const KEY = "start";

/** `leaving`: the conversation that it follows, whose agent ends when it begins. */
export const USUAL_START = Object.freeze({ leaving: null, settings: USUAL_SETTINGS });

export const keepStart = (start) => keep(KEY, start.leaving ? JSON.stringify(start) : "");

export function recallStart() {
  try {
    return JSON.parse(recall(KEY)) ?? USUAL_START;
  } catch {
    return USUAL_START;
  }
}
