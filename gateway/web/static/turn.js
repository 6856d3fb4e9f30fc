// One turn as plain data, and how each event changes it.

/**
 * `state`: sending, queued, running, stopping, completed.
 * `segments`: what happened, in order: `{kind: text|said|thinking|tool|notice, …}`; `said` is text that is finished.
 * What a person is, or was, asked about a call is the call's `approval`; its `state` is pending (the call waits),
 * waiting (the turn is over, an answer runs the call in a new one), lost, over, or null (the list has to tell).
 */
export function newTurn({ turnId = null, text = null, createdAt = null, state = "sending" }) {
  return {
    turnId, text, createdAt, state, schedule: null,
    position: null, model: null, logFile: null, memory: null,
    segments: [], tasks: [], result: null, takingBack: false,
  };
}

export const isUnfinished = (turn) => turn.state !== "completed";
export const isActive = (turn) => turn.state === "running" || turn.state === "stopping";

function addText(turn, kind, text) {
  const last = turn.segments.at(-1);
  if (last?.kind === kind) last.text += text;
  else turn.segments.push({ kind, text });
}

/** What identifies a call: its number in the turn. Events of version 1.0 have only the model's id, which may repeat. */
export const toCall = (data) => ({ index: data.index ?? null, toolUseId: data.tool_use_id ?? null });

const isOf = (call, tool) => (call.index === null || tool.index === null ? tool.toolUseId === call.toolUseId : tool.index === call.index);

const findTool = (turn, call) => turn.segments.find((segment) => segment.kind === "tool" && isOf(call, segment));

function ensureTool(turn, call, name = "") {
  let tool = findTool(turn, call);
  if (!tool) {
    tool = {
      kind: "tool", index: call.index, toolUseId: call.toolUseId, name, summary: "", input: null,
      status: "running", error: null, output: null, ran: null, duration_ms: null, startedAt_ms: Date.now(),
      place: {}, approval: null, allowed_by: null, parent_index: null, output_chars: null, output_kept_chars: null,
    };
    turn.segments.push(tool);
  }
  tool.index ??= call.index;
  return tool;
}

function takeFields(target, data, ...names) {
  for (const name of names) if (data[name] !== undefined && data[name] !== null) target[name] = data[name];
  return target;
}

/** What else the events and the result tell of a call: who let it pass, whose sub-agent made it, and how long its output was. */
const EVIDENCE = ["allowed_by", "parent_index", "output_chars", "output_kept_chars"];

/** Add what a person is asked, or what is known now of it; false if that is nothing new. */
export function addApproval(turn, approval) {
  const tool = ensureTool(turn, approval);
  const known = tool.approval?.approvalId === approval.approvalId ? tool.approval : null;
  if (known && known.state === approval.state && known.expiresAt === approval.expiresAt && known.isListed >= approval.isListed) return false;
  tool.name ||= approval.name;
  tool.summary ||= approval.summary;
  tool.approval = Object.assign(known ?? { decision: null, by: null, sent: null, place: tool.place }, approval, { input: approval.input ?? known?.input ?? tool.input });
  if (known) Object.assign(known, { decision: null, sent: null });
  if (tool.status === "running") Object.assign(tool, { status: "waiting", askedAt_ms: Date.now() });
  return true;
}

/**
 * Of all that waits for a person, take what is this turn's; what waits no longer is over. True if something changed.
 * The events of a turn that goes on tell of new ones, in their place.
 */
export function takeApprovals(turn, approvals) {
  const asked = turn.segments.map(({ approval }) => approval).filter(Boolean);
  const find = ({ approvalId }) => asked.find((known) => known.approvalId === approvalId);
  const own = approvals.filter((approval) => approval.turnId === turn.turnId && (isUnfinished(turn) ? find(approval) : true));
  // Where somebody has answered, the list was on its way meanwhile.
  const changed = own.filter((approval) => !find(approval)?.by && addApproval(turn, approval));
  const over = isUnfinished(turn) ? [] : asked.filter((known) => isUndecided(known) && known.state !== "over" && !own.some(({ approvalId }) => approvalId === known.approvalId));
  for (const known of over) known.state = "over";
  return changed.length + over.length > 0;
}

const isUndecided = (approval) => Boolean(approval) && approval.decision === null;

/** Its turn is over, and whether an answer may still begin a new one is not known yet. */
export const isUntold = ({ approval }) => isUndecided(approval) && approval.state === null;

/** A person can answer. */
export const isAsking = (approval) => isUndecided(approval) && (approval.state === "pending" || approval.state === "waiting");

/** How it ended, as far as anybody answered: a run may have ended before. */
function answerOf({ decision, by, message, permit, answers }) {
  const isAnswered = Boolean(decision && by && by !== "waiting");
  return { decision: isAnswered ? decision : null, by: isAnswered ? by : null, message: message ?? "", permit: permit ?? null, answers: answers ?? null };
}

/** The call that a person was asked about, perhaps in an earlier turn, with the answer. */
function answeredCall(turn, data) {
  const tool = ensureTool(turn, toCall(data));
  if (tool.approval?.approvalId !== data.approval_id) tool.approval = { ...toCall(data), approvalId: data.approval_id, name: tool.name, summary: tool.summary, input: null, permits: [], hidden: [], reason: "", state: null, sent: null };
  Object.assign(tool.approval, answerOf(data));
  return tool;
}

function resolveApproval(turn, data) {
  // Without an id nobody was asked: an earlier yes covers the call.
  const tool = data.approval_id ? answeredCall(turn, data) : ensureTool(turn, toCall(data));
  takeFields(tool, data, "allowed_by");
  if (tool.status !== "waiting") return;
  tool.status = "running";
  // The wait for the person is nobody's work, nor that of the calls beside it.
  for (const segment of turn.segments) if (segment.status === "running") segment.startedAt_ms += Date.now() - Math.max(tool.askedAt_ms, segment.startedAt_ms);
}

function extendApproval(turn, data) {
  const { approval } = findTool(turn, toCall(data)) ?? {};
  if (approval?.approvalId === data.approval_id) approval.expiresAt = data.expires_at;
}

/** Drop the last characters (code points) of what was streamed: the model's answer broke off and begins again. */
function dropLast(turn, kind, count) {
  for (const segment of turn.segments.filter((known) => known.kind === kind).reverse()) {
    const characters = [...segment.text];
    segment.text = characters.slice(0, Math.max(0, characters.length - count)).join("");
    count = Math.max(0, count - characters.length);
  }
  turn.segments = turn.segments.filter((segment) => segment.kind !== kind || segment.text);
}

function addNotice(turn, data) {
  if (data.void_text_chars) dropLast(turn, "text", data.void_text_chars);
  if (data.void_thinking_chars) dropLast(turn, "thinking", data.void_thinking_chars);
  const previous = turn.segments.at(-1);
  // A service that is retried says the same thing again with a new number: the latest one stands.
  if (previous?.kind === "notice" && previous.code === data.code) previous.message = data.message;
  else turn.segments.push({ kind: "notice", code: data.code, message: data.message });
}

const isWork = (segment) => segment.kind !== "text" && segment.kind !== "notice";

/** Results of earlier releases have no steps: their text stands after everything else. */
function stepsOf(turn, result) {
  if (result.steps) return result.steps;
  return [...turn.segments.filter(isWork), ...(result.reply ? [{ type: "text", text: result.reply }] : [])];
}

/** A step as a segment; what is known of it already, such as a call's output, stays. */
function segmentOf(turn, step, taken) {
  const find = (isSame) => turn.segments.find((known) => !taken.has(known) && isSame(known));
  switch (step.type) {
    case "text": return { kind: "said", text: step.text, isClosing: step.by === "gateway" };
    case "thinking": return find((known) => known.kind === "thinking" && known.text.trim() === step.text) ?? { kind: "thinking", text: step.text };
    case "tool": return findTool(turn, toCall(step));
    case "approval": return takeFields(answeredCall(turn, step), step, "allowed_by");
    default: return step.kind ? step : null;
  }
}

/** The result is the truth: streamed text gives way to its steps, and each tool call takes its final state. */
export function completeTurn(turn, result) {
  turn.state = "completed";
  turn.result = result;
  turn.model = result.model ?? turn.model;
  turn.logFile = result.log_file ?? turn.logFile;
  turn.memory = result.memory ?? turn.memory;
  turn.tasks = result.tasks ?? turn.tasks;
  for (const tool of result.tools ?? []) takeFields(ensureTool(turn, toCall(tool)), tool, "name", "summary", "status", "error", "duration_ms", ...EVIDENCE);
  const untold = turn.segments.filter((segment) => segment.kind === "notice" && !isTold(result, segment));
  const taken = new Set();
  for (const step of stepsOf(turn, result)) taken.add(segmentOf(turn, step, taken));
  turn.segments = [...taken, ...untold].filter(Boolean);
  for (const segment of turn.segments) {
    if (segment.kind === "tool" && isOpen(segment)) segment.status = "unknown";
    if (isUndecided(segment.approval)) segment.approval.state = null;
  }
}

/** What to say of a call: one whose turn is over may still wait for a person. */
export const statusOf = (tool) => (isAsking(tool.approval) ? "waiting" : tool.status);

/** The calls of sub-agents by the call that started them; a call whose parent is not known stands by itself. */
export function callsBelow(turn) {
  const below = new Map();
  const parents = new Map(turn.segments.filter(({ kind, index }) => kind === "tool" && index !== null).map((tool) => [tool.index, tool]));
  for (const segment of turn.segments) {
    const parent = segment.kind === "tool" ? parents.get(segment.parent_index) : null;
    if (parent && parent !== segment) below.set(parent, [...below.get(parent) ?? [], segment]);
  }
  return below;
}

/** The call has not come back yet. */
export const isOpen = (tool) => tool.status === "running" || tool.status === "waiting";

const isTold = (result, notice) => (result.notices ?? []).some((told) => told.code === notice.code && told.message === notice.message);

const CHANGES = {
  "turn.queued": (turn) => { turn.state = "queued"; },
  "turn.started": (turn, data) => Object.assign(turn, {
    state: turn.state === "stopping" ? "stopping" : "running",
    position: null,
    model: data.model ?? turn.model,
    logFile: data.log_file ?? turn.logFile,
  }),
  "memory.injected": (turn, data) => { turn.memory = data; },
  "text.delta": (turn, data) => addText(turn, "text", data.text ?? ""),
  "thinking.delta": (turn, data) => addText(turn, "thinking", data.text ?? ""),
  "tool.started": (turn, data) => takeFields(ensureTool(turn, toCall(data)), data, "name", "summary", "input", "allowed_by", "parent_index"),
  "tool.output": (turn, data) => { const tool = ensureTool(turn, toCall(data)); if (isOpen(tool)) tool.output = (tool.output ?? "") + (data.text ?? ""); },
  "tool.finished": (turn, data) => takeFields(ensureTool(turn, toCall(data)), data, "name", "status", "error", "output", "ran", "duration_ms", ...EVIDENCE),
  "tasks.changed": (turn, data) => { turn.tasks = data.tasks ?? []; },
  "approval.resolved": resolveApproval,
  "approval.extended": extendApproval,
  notice: addNotice,
  conversation_summarised: (turn, data) => addNotice(turn, { ...data, code: "conversation_summarised" }),
  "turn.completed": completeTurn,
};

/** Fold one event into its turn. Event types that are not known yet change nothing. */
export function applyEvent(turn, type, data) {
  if (!isUnfinished(turn)) return;
  if (type !== "turn.queued" && type !== "turn.completed" && (turn.state === "queued" || turn.state === "sending")) turn.state = "running";
  CHANGES[type]?.(turn, data);
}
