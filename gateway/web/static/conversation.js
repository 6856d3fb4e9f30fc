// One open conversation: the streams of its turns, and the person's actions.

import { errorFromShape, networkError } from "/static/api.js";
import { backoff, follow, followChanges, pause } from "/static/follow.js";
import { USUAL_SETTINGS, changeBetween, changedBy } from "/static/memory-settings.js";
import {
  answerApproval, changeSettings, getConversation, interruptConversation, listBranches, listMessages, newConversationWith, startTurn, takeBackTurn, toApproval,
} from "/static/routes.js";
import { readEvents } from "/static/sse.js";
import { USUAL_START } from "/static/start.js";
import { addApproval, isUnfinished, newTurn, takeApprovals } from "/static/turn.js";
import { TurnStore, parseData } from "/static/turn-store.js";

// The same idempotency key makes repeating safe; more often than this the reader is asked.
const MAX_SEND_ATTEMPTS = 3;
// An answer is checked within seconds; a browser has few connections to a host.
const CHECK_MS = 60_000;

export class Conversation {
  id;
  #store = new TurnStore();
  #page;
  #closing = new AbortController();
  #following = null;
  #checking = null;
  #loading = null;
  #lastSend = Promise.resolve();
  #earlier = null;
  #unread = 0;
  #hasLoaded = false;
  #settings;
  #start;
  #title = null;
  #branches = [];

  /**
   * `page` hears of everything: turnsChanged(turn?), connected(isConnected), identified(id), activity(),
   * settingsChanged(), completed(turn), approvalAsked(), failed(error, retry), gone();
   * it knows whether answers are checked after their turns: checksAnswers().
   * `start` is what it begins with where it is new.
   */
  constructor(id, page, start = USUAL_START) {
    this.id = id;
    this.#page = page;
    this.#start = start;
    this.#settings = id ? null : start.settings;
  }

  /** As it was stored when it was read; null before that. */
  get title() {
    return this.#title;
  }

  /** What it may remember; null while that is not known yet. */
  get settings() {
    return this.#settings;
  }

  /** Somebody has read them anew. */
  set settings(settings) {
    this.#settings = settings;
    this.#page.settingsChanged();
  }

  get turns() {
    return this.#store.turns;
  }

  get isBusy() {
    return this.#store.isBusy;
  }

  get activeTurn() {
    return this.#store.activeTurn;
  }

  /** Stop reading; the turns themselves go on. */
  close() {
    this.#closing.abort();
  }

  /** Read what is stored, merge it into what is known, and follow what still runs. */
  load() {
    this.#loading ??= this.#load().finally(() => { this.#loading = null; });
    return this.#loading;
  }

  async #load() {
    const { signal } = this.#closing;
    const [{ messages, earlier }, summary, branches] = await Promise.all([listMessages(this.id, { signal }), getConversation(this.id, signal), listBranches(this.id, signal)]);
    if (signal.aborted) return;
    this.#branches = branches;
    this.#title = summary.title;
    // Reading the latest again does not change how far back the reader went.
    if (!this.#hasLoaded) this.#earlier = earlier;
    this.#hasLoaded = true;
    this.#store.merge(messages, summary);
    this.settings = summary.settings;
    this.#unread = Math.max(0, summary.turnCount - this.turns.length);
    this.#page.turnsChanged();
    this.#followNoLonger();
    // What waits for an answer is among the events of its turn, after the call that it is about.
    if (this.isBusy) this.#ensureFollowing();
  }

  /** How full the model's context was after the last turn that tells: `{tokens, window}`, or null. */
  get context() {
    const usage = this.turns.findLast((turn) => turn.result?.usage?.context_tokens)?.result.usage;
    return usage?.context_window ? { tokens: usage.context_tokens, window: usage.context_window } : null;
  }

  /** How many turns are known of, those not read yet included. */
  get turnCount() {
    return this.turns.length + this.#unread;
  }

  /** The branches that part just before a turn, or after the last one if it is null: in order, null for this one. */
  waysAt(turn) {
    if (this.#branches.length === 0) return [];
    const index = turn ? this.turns.indexOf(turn) : this.turns.length;
    // What stands before the first turn that was read is not known.
    if (index === 0 && this.hasEarlier) return [];
    const previous = this.turns[index - 1]?.turnId ?? null;
    const others = this.#branches.filter((branch) => branch.afterTurnId === previous);
    if (others.length === 0) return [];
    const before = others.filter((branch) => turn && branch.createdAt < turn.createdAt);
    return [...(turn ? before : others), null, ...(turn ? others.slice(before.length) : [])];
  }

  get hasEarlier() {
    return this.#earlier !== null;
  }

  /** Read one more page of what came before. */
  async loadEarlier() {
    if (!this.hasEarlier) return;
    const { messages, earlier } = await listMessages(this.id, { before: this.#earlier, signal: this.#closing.signal });
    this.#earlier = earlier;
    const before = this.turns.length;
    this.#store.mergeEarlier(messages);
    this.#unread = Math.max(0, this.#unread - (this.turns.length - before));
  }

  // -- events -----------------------------------------------------------------------------------

  /** False when an event before this one is missing and the stream must be taken up again from an earlier place. */
  #take(event) {
    if (event.type === "error") throw errorFromShape(parseData(event));
    const change = this.#store.take(event);
    if (change === "gap") return false;
    if (change !== "seen") this.#tell(event.type, change);
    return true;
  }

  #tell(type, { turn, isNew, data }) {
    if (type === "approval.requested") addApproval(turn, toApproval(data));
    if (type === "turn.completed") {
      this.#followNoLonger();
      this.#page.completed(turn);
      if (this.#page.checksAnswers()) this.#followCheck(turn);
    }
    // A turn that starts moves those that wait behind it up.
    this.#page.turnsChanged(isNew || type === "turn.started" ? null : turn);
    if (type === "approval.requested") this.#page.approvalAsked();
    if (type === "turn.started" || type === "turn.completed") this.#page.activity();
    // A turn that another window started: its message is stored.
    if (isNew && turn.text === null) this.load().catch(() => {});
  }

  #ensureFollowing() {
    if (this.#following || this.#closing.signal.aborted) return;
    const following = new AbortController();
    this.#following = following;
    follow({
      conversationId: this.id,
      position: () => this.#store.position,
      take: (event) => this.#take(event),
      connected: (isConnected) => this.#page.connected(isConnected),
      signal: AbortSignal.any([this.#closing.signal, following.signal]),
    }).catch((error) => this.#followFailed(error)).finally(() => {
      if (this.#following === following) this.#following = null;
    });
  }

  /** Read again what is stored when a check of a finished turn's answer has found something, and in the end. */
  async #followCheck(turn) {
    this.#checking?.abort();
    const checking = new AbortController();
    this.#checking = checking;
    const changed = () => { this.load().catch(() => {}); };
    const signal = AbortSignal.any([this.#closing.signal, checking.signal, AbortSignal.timeout(CHECK_MS)]);
    await followChanges({ conversationId: this.id, place: this.#store.lastOf(turn), changed, signal }).catch(() => {});
    if (!this.#closing.signal.aborted && !checking.signal.aborted) changed();
  }

  /** Another stream, or what is stored, may have told the last thing that was waited for. */
  #followNoLonger() {
    if (this.#store.position !== null) return;
    this.#following?.abort();
    this.#following = null;
    this.#page.connected(true);
  }

  #followFailed(error) {
    this.#page.connected(true);
    if (error.status === 404) this.#page.gone();
    else this.#page.failed(error, () => this.load().catch((again) => this.#followFailed(again)));
  }

  // -- sending ----------------------------------------------------------------------------------

  /** Send a message. Resolves once the gateway has taken it; the reply goes on by itself. Rejects with `ApiError`. */
  send(text, idempotencyKey) {
    const turn = newTurn({ text, createdAt: new Date().toISOString() });
    this.turns.push(turn);
    this.#page.turnsChanged();
    // One after the other: order is kept, and the second message finds the conversation that the first one started.
    const accepted = this.#lastSend.then(() => this.#sendAccepted(turn, idempotencyKey));
    this.#lastSend = accepted.catch(() => {});
    return accepted.catch((error) => {
      this.#store.drop(turn);
      this.#page.turnsChanged();
      throw error;
    });
  }

  /** Resolves at the turn's first event; reads on after that. */
  #sendAccepted(turn, idempotencyKey) {
    return new Promise((resolve, reject) => {
      this.#send(turn, idempotencyKey, resolve).catch((error) => (turn.turnId ? this.#followFailed(error) : reject(error)));
    });
  }

  async #send(turn, idempotencyKey, accepted) {
    for (let attempts = 1; ; attempts += 1) {
      try {
        await this.#stream(turn, idempotencyKey, accepted);
        break;
      } catch (error) {
        if (turn.turnId) break;
        const isDropped = error.code === "network" || error instanceof TypeError;
        if (!isDropped) throw error;
        if (attempts >= MAX_SEND_ATTEMPTS) throw networkError();
        await pause(backoff(attempts));
      }
    }
    if (this.isBusy) this.#ensureFollowing();
  }

  async #stream(turn, idempotencyKey, accepted) {
    // A page that turns elsewhere gives up reading, but never a message that was not taken yet.
    const reading = new AbortController();
    this.#closing.signal.addEventListener("abort", () => { if (turn.turnId) reading.abort(); });
    await this.#prepare();
    const response = await startTurn({ message: turn.text, conversationId: this.id, idempotencyKey, signal: reading.signal });
    for await (const event of readEvents(response)) {
      if (!turn.turnId) {
        if (event.type === "error") throw errorFromShape(parseData(event));
        this.#accept(turn, parseData(event));
        accepted();
      }
      if (this.#closing.signal.aborted || !this.#take(event) || !isUnfinished(turn)) return;
      // One stream for all that waits: a browser has few connections to a host.
      if (turn.state === "queued") return;
    }
    if (!turn.turnId) throw networkError();
  }

  #accept(turn, data) {
    this.#store.bind(turn, data?.turn_id ?? null);
    this.#begin(data.conversation_id);
    this.#page.turnsChanged();
  }

  /** Begin it, unless its first message alone makes it what it is to be. */
  async #prepare() {
    if (this.id) return;
    const { leaving } = this.#start;
    const left = leaving && await getConversation(leaving).catch((error) => { if (error.status !== 404) throw error; });
    // Being left ends a conversation's agent at once; one that is still at work is let finish.
    const follows = left?.state === "idle" ? left : null;
    const change = changeBetween(follows?.settings ?? USUAL_SETTINGS, this.#settings);
    if (follows || change) this.#begin(await newConversationWith(follows?.id ?? null, change));
  }

  #begin(id) {
    if (this.id) return;
    this.id = id;
    this.#page.identified(this);
  }

  /** Change its settings; where it has not begun yet, it begins with that. */
  async choose(change) {
    // The first message may be starting it right now.
    if (!this.id) await this.#lastSend;
    if (!this.id) {
      this.settings = changedBy(this.#settings, change);
      return;
    }
    this.settings = await changeSettings(this.id, change);
    this.#page.activity();
  }

  // -- stopping, taking back, answering ---------------------------------------------------------

  async stop() {
    const turn = this.activeTurn;
    if (!turn || turn.state === "stopping") return;
    turn.state = "stopping";
    this.#page.turnsChanged(turn);
    try {
      await interruptConversation(this.id);
    } catch (error) {
      if (isUnfinished(turn)) turn.state = "running";
      this.#page.turnsChanged(turn);
      // Nothing runs any more: what is stored says how it ended.
      if (error.status === 409) await this.load().catch((failure) => this.#followFailed(failure));
      else this.#page.failed(error, () => this.stop());
    }
  }

  /** Take a queued message back; gives its text, or null where it was too late. */
  async takeBack(turn) {
    turn.takingBack = true;
    this.#page.turnsChanged(turn);
    try {
      await takeBackTurn(this.id, turn.turnId);
      this.#store.drop(turn);
      this.#followNoLonger();
      this.#page.turnsChanged();
      return turn.text;
    } catch (error) {
      turn.takingBack = false;
      this.#page.turnsChanged(turn);
      if (error.status === 404 || error.status === 409) await this.load().catch((failure) => this.#followFailed(failure));
      else this.#page.failed(error);
      return null;
    }
  }

  async answer(turn, approval, reply) {
    approval.sent = reply.decision;
    this.#page.turnsChanged(turn);
    try {
      await answerApproval(approval.approvalId, reply);
      if (approval.decision === null) Object.assign(approval, { decision: reply.decision, by: "user", message: reply.message ?? "" });
      // Where its turn was over, the answer began a new one.
      if (!isUnfinished(turn)) {
        this.load().catch((failure) => this.#followFailed(failure));
        this.#page.activity();
      }
    } catch (error) {
      // Answered already, elsewhere or by the clock: its event, or the list of what waits, says how.
      const isTooLate = error.status === 404 || error.status === 409;
      approval.sent = isTooLate ? "elsewhere" : null;
      if (!isTooLate) this.#page.failed(error, () => this.answer(turn, approval, reply));
    }
    this.#page.turnsChanged(turn);
  }

  /** What waits for a person in all conversations has been read. */
  takeApprovals(approvals) {
    for (const turn of this.turns) if (takeApprovals(turn, approvals)) this.#page.turnsChanged(turn);
  }
}
