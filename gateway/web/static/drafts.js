// Drafts: text that is being typed, files attached to it, messages that were sent but not accepted, answers to the agent's questions and
// edits of messages. They survive a reload.

import { keep, recall } from "/static/storage.js";

const draftKey = (conversationId) => `draft.${conversationId ?? "new"}`;
const unsentKey = (conversationId) => `unsent.${conversationId ?? "new"}`;
const attachedKey = (conversationId) => `attached.${conversationId ?? "new"}`;

// The messages that this page is sending right now: the conversation of each by its key. A reload finds none.
const inFlight = new Map();

const draftOf = (conversationId) => recall(draftKey(conversationId)) ?? "";
export const keepDraft = (conversationId, text) => keep(draftKey(conversationId), text);

/** Add a text to the draft of a conversation that is not open. */
export const addToDraft = (conversationId, text) => keepDraft(conversationId, [draftOf(conversationId), text].filter(Boolean).join("\n"));

function recallList(key) {
  try {
    return JSON.parse(recall(key) ?? "[]");
  } catch {
    return [];
  }
}

const keepList = (key, list) => keep(key, list.length ? JSON.stringify(list) : "");

/** The files attached to a draft: `{name, path}`; `path` is null for one that was being uploaded. */
export const recallAttached = (conversationId) => recallList(attachedKey(conversationId));
export const keepAttached = (conversationId, files) => keepList(attachedKey(conversationId), files.map(({ name, path }) => ({ name, path })));

const answersKey = (approvalId) => `answers.${approvalId}`;

/** What was filled in of an approval's questions: `{chosen, own}` for each of them. */
export const recallAnswers = (approvalId) => recallList(answersKey(approvalId));
export const keepAnswers = (approvalId, answers) => keepList(answersKey(approvalId), answers);

const editKey = (turnId) => `edit.${turnId}`;

/** The edit of a turn's message that was neither sent nor cancelled; null if there is none. */
export const recallEdit = (turnId) => recall(editKey(turnId));
export const keepEdit = (turnId, text) => keep(editKey(turnId), text);

/** Messages sent and not taken: `{text, key, isReturned}`; a returned one is in the message box again. */
const readUnsent = (conversationId) => recallList(unsentKey(conversationId));
const writeUnsent = (conversationId, unsent) => keepList(unsentKey(conversationId), unsent);

/** An idempotency key; randomUUID exists on secure origins only. */
export function newKey() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Note a message as on its way; gives its idempotency key: that of an earlier try of the same text, so that it cannot run twice. */
export function holdUnsent(conversation, text) {
  const unsent = readUnsent(conversation.id);
  const tried = unsent.find((message) => message.isReturned && message.text === text);
  const message = { text, key: tried?.key ?? newKey(), isReturned: false };
  inFlight.set(message.key, conversation);
  writeUnsent(conversation.id, [...unsent.filter((other) => other !== tried), message]);
  return message.key;
}

/** A conversation has begun: what was sent to it goes along. */
export function moveUnsent(conversation) {
  const isOwn = ({ key, isReturned }) => isReturned || inFlight.get(key) === conversation;
  const unsent = readUnsent(null);
  writeUnsent(null, unsent.filter((message) => !isOwn(message)));
  writeUnsent(conversation.id, [...readUnsent(conversation.id), ...unsent.filter(isOwn)]);
}

/** The gateway took it. */
export function releaseUnsent({ id }, key) {
  inFlight.delete(key);
  writeUnsent(id, readUnsent(id).filter((message) => message.key !== key && !message.isReturned));
}

/** The gateway did not take it. `isReturned`: its text went back into the box; else it waits here to be found. */
export function failUnsent({ id }, key, isReturned) {
  inFlight.delete(key);
  writeUnsent(id, readUnsent(id).map((message) => (message.key === key ? { ...message, isReturned } : message)));
}

/** The text to put into the box: messages that were lost on their way, in order, before the draft. */
export function recoverText(conversationId) {
  const unsent = readUnsent(conversationId);
  const lost = unsent.filter((message) => !message.isReturned && !inFlight.has(message.key));
  writeUnsent(conversationId, unsent.map((message) => (lost.includes(message) ? { ...message, isReturned: true } : message)));
  const text = [...lost.map((message) => message.text), draftOf(conversationId)].filter(Boolean).join("\n");
  keepDraft(conversationId, text);
  return text;
}
