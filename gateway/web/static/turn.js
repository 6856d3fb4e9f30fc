// One turn as plain data, and how each event changes it.

/**
 * `state`: sending, queued, running, stopping, completed.
 * `segments`: what happened, in order: `{kind: text|said|thinking|tool|approval|notice, …}`; `said` is text that is finished.
 */
export function newTurn({ turnId = null, text = null, createdAt = null, state = "sending" }) {
  return {
    turnId, text, createdAt, state,
    position: null, model: null, logFile: null, memory: null,
    segments: [], result: null, takingBack: false,
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

function ensureTool(turn, data) {
  const call = toCall(data);
  let tool = findTool(turn, call);
  if (!tool) {
    tool = {
      kind: "tool", ...call, name: data.name ?? "", summary: "", input: null,
      status: "running", error: null, output: null, ran: null, duration_ms: null, startedAt_ms: Date.now(),
    };
    turn.segments.push(tool);
  }
  tool.index ??= call.index;
  return tool;
}

const takeFields = (target, data, ...names) => {
  for (const name of names) if (data[name] !== undefined && data[name] !== null) target[name] = data[name];
};

export function addApproval(turn, approval) {
  if (turn.segments.some((segment) => segment.kind === "approval" && segment.approvalId === approval.approvalId)) return;
  const tool = findTool(turn, approval);
  turn.segments.push({ kind: "approval", ...approval, input: tool?.input ?? approval.input, decision: null, by: null, sent: null });
  if (tool?.status === "running") tool.status = "waiting";
}

function resolveApproval(turn, data) {
  const approval = turn.segments.find((segment) => segment.kind === "approval" && segment.approvalId === data.approval_id);
  if (!approval) return;
  Object.assign(approval, { decision: data.decision, by: data.by ?? null, message: data.message ?? "", permit: data.permit ?? null, answers: data.answers ?? null });
  const tool = findTool(turn, approval);
  if (tool?.status === "waiting") Object.assign(tool, { status: "running", startedAt_ms: Date.now() });
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
    case "approval": return find((known) => known.approvalId === step.approval_id) ?? answeredApproval(turn, step);
    default: return step.kind ? step : null;
  }
}

function answeredApproval(turn, { approval_id: approvalId, decision, by, message = "", permit = null, answers = null, ...step }) {
  const { name = "", summary = "" } = findTool(turn, toCall(step)) ?? {};
  return { kind: "approval", approvalId, ...toCall(step), name, summary, input: null, expiresAt: null, decision, by, message, permit, answers, sent: null };
}

/** The result is the truth: streamed text gives way to its steps, and each tool call takes its final state. */
export function completeTurn(turn, result) {
  turn.state = "completed";
  turn.result = result;
  turn.model = result.model ?? turn.model;
  turn.logFile = result.log_file ?? turn.logFile;
  turn.memory = result.memory ?? turn.memory;
  for (const tool of result.tools ?? []) takeFields(ensureTool(turn, tool), tool, "name", "summary", "status", "error", "duration_ms");
  const untold = turn.segments.filter((segment) => segment.kind === "notice" && !isTold(result, segment));
  const taken = new Set();
  for (const step of stepsOf(turn, result)) taken.add(segmentOf(turn, step, taken));
  turn.segments = [...taken, ...untold].filter(Boolean);
  for (const segment of turn.segments) {
    if (segment.kind === "tool" && isOpen(segment)) segment.status = "unknown";
    if (segment.kind === "approval" && !segment.decision) segment.decision = "deny";
  }
}

/** The call has not come back yet. */
export const isOpen = (tool) => tool.status === "running" || tool.status === "waiting";

const isTold = (result, notice) => (result.notices ?? []).some((told) => told.code === notice.code && told.message === notice.message);

const CHANGES = {
  "turn.queued": (turn, data) => Object.assign(turn, { state: "queued", position: data.position ?? null }),
  "turn.started": (turn, data) => Object.assign(turn, {
    state: turn.state === "stopping" ? "stopping" : "running",
    position: null,
    model: data.model ?? turn.model,
    logFile: data.log_file ?? turn.logFile,
  }),
  "memory.injected": (turn, data) => { turn.memory = data; },
  "text.delta": (turn, data) => addText(turn, "text", data.text ?? ""),
  "thinking.delta": (turn, data) => addText(turn, "thinking", data.text ?? ""),
  "tool.started": (turn, data) => takeFields(ensureTool(turn, data), data, "name", "summary", "input"),
  "tool.finished": (turn, data) => takeFields(ensureTool(turn, data), data, "name", "status", "error", "output", "ran", "duration_ms"),
  "approval.resolved": resolveApproval,
  notice: addNotice,
  "turn.completed": completeTurn,
};

/** Fold one event into its turn. Event types that are not known yet change nothing. */
export function applyEvent(turn, type, data) {
  if (!isUnfinished(turn)) return;
  if (type !== "turn.queued" && type !== "turn.completed" && (turn.state === "queued" || turn.state === "sending")) turn.state = "running";
  CHANGES[type]?.(turn, data);
}
