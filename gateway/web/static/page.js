// The page: one open conversation between the list and the message box.

import { announce } from "/static/announcer.js";
import { conversationInAddress, setAddress, turnInAddress } from "/static/address.js";
import { setPageTitle } from "/static/badge.js";
import { Composer } from "/static/composer.js";
import { confirmDialog } from "/static/dialog.js";
import { Conversation } from "/static/conversation.js";
import { ConversationList } from "/static/conversation-list.js";
import { byId, setText } from "/static/dom.js";
import { addToDraft, failUnsent, holdUnsent, keepDraft, keepEdit, moveUnsent, recallEdit, recoverText, releaseUnsent } from "/static/drafts.js";
import { DetailsButton } from "/static/details-button.js";
import { Drawer } from "/static/drawer.js";
import { ErrorLine } from "/static/error-line.js";
import { t } from "/static/i18n.js";
import { Inbox } from "/static/inbox.js";
import { openLog } from "/static/log-dialog.js";
import { MemoryButton } from "/static/memory-button.js";
import { spokenEnd } from "/static/outcome.js";
import { deleteConversation, forkConversation, listBranches, pinConversation, showFilesOf } from "/static/routes.js";
import { Scroll } from "/static/scroll.js";
import { USUAL_START, keepStart, recallStart } from "/static/start.js";
import { Titles } from "/static/titles.js";
import { Transcript } from "/static/transcript.js";
import { isUntold } from "/static/turn.js";
import { showHidden } from "/static/visible.js";
import { onOtherTabs, tellOtherTabs } from "/static/tabs.js";
import { welcome } from "/static/welcome.js";
import { openWorkspace } from "/static/workspace-panel.js";

export class Page {
  #conversation = null;
  #server = {};
  /** What came back into the message box, as far as it still stands at its beginning. */
  #cameBack = "";
  /** The conversation of which a branch is being made: a button that is pressed twice makes one. */
  #forking = null;
  #titles = new Titles(() => {
    this.#showTitle();
    this.#inbox.draw();
  });
  #drawer = new Drawer();
  #error = new ErrorLine(byId("error-slot"));
  #memory = new MemoryButton(byId("memory"), { failed: (error, retry) => this.#error.show(error, retry) });
  #details = new DetailsButton(byId("model"));
  #scroll = new Scroll(byId("scroller"), byId("transcript"), byId("jump-latest"));
  #welcome = welcome((text) => this.#send(text));
  #transcript = new Transcript(byId("transcript"), this.#scroll, {
    takeBack: (turn) => this.#takeBack(turn),
    answer: (...reply) => this.#answer(...reply),
    openLog,
    resend: (turn, text) => this.#resend(turn, text),
    branch: (turn) => this.#branch(turn),
    openBranch: (branch) => this.open(branch.conversationId, { turnId: branch.turnId }),
    waysAt: (turn) => this.#conversation.waysAt(turn),
    loadEarlier: (conversation) => this.#loadEarlier(conversation),
  });
  #composer = new Composer(
    { form: byId("composer"), field: byId("message"), send: byId("send"), stop: byId("stop"), stopWords: byId("stop-words"), hint: byId("composer-hint"), savePrompt: byId("save-prompt"), attachments: { row: byId("attachments"), button: byId("attach"), input: byId("attach-input") } },
    { failed: (error, retry) => this.#error.show(error, retry), sent: () => this.#conversation.turns.map((turn) => turn.text).filter(Boolean), send: (text) => this.#send(text), stop: () => this.#conversation.stop(), edited: (text) => keepDraft(this.#conversation.id, text) },
  );
  #list = new ConversationList(
    { list: byId("conversation-list"), end: byId("conversation-list-end"), search: byId("search") },
    {
      open: (id, turnId) => this.open(id, { turnId }),
      pin: (conversation) => this.#pin(conversation),
      rename: (id, title) => this.#rename(id, title),
      remove: (...which) => this.#remove(...which),
      failed: (error, retry) => this.#error.show(error, retry),
      refreshed: () => this.#listRefreshed(),
    },
  );

  #inbox = new Inbox(byId("inbox"), {
    open: (id) => this.open(id),
    isOpen: (id) => this.#conversation?.id === id,
    titleOf: (id) => showHidden(this.#titles.find(id)) || t("untitled"),
    counted: (counts) => { this.#list.waiting = counts; },
    listed: (approvals) => this.#conversation?.takeApprovals(approvals),
    answered: () => this.#changed(),
    left: () => this.#composer.focus(),
  });

  start() {
    addEventListener("popstate", () => this.#openAddress());
    byId("new-conversation").addEventListener("click", () => this.startNew());
    byId("files").addEventListener("click", () => this.#openWorkspace());
    byId("find").addEventListener("click", () => this.find());
    addEventListener("candor:open-file", (event) => {
      event.preventDefault();
      this.#openWorkspace(event.detail.path);
    });
    byId("skip").addEventListener("click", (event) => {
      // The address names the conversation; followed as a link this would leave it.
      event.preventDefault();
      byId("message").focus();
    });
    // A person may type before the script is there.
    const typed = byId("message").value;
    this.#openAddress(recallStart());
    if (typed) {
      this.#composer.text += typed;
      keepDraft(this.#conversation.id, this.#composer.text);
    }
    onOtherTabs(() => this.#list.refresh());
    document.addEventListener("visibilitychange", () => { if (!document.hidden && this.#conversation.id) this.#load(this.#conversation); });
    this.#list.refresh();
    this.#inbox.refresh();
  }

  #openWorkspace(path = null) {
    openWorkspace({ path, attach: (attached) => this.#composer.attach(attached) });
  }

  /** `server`: model, isDemo. */
  showServer(server) {
    this.#server = server;
    this.#details.showServer(server);
  }

  get conversationId() { return this.#conversation.id; }

  /** The open conversation: `{id, title}`; null for one that has not begun. */
  get here() {
    const { id } = this.#conversation;
    return id ? { id, title: showHidden(this.#titles.of(id)) || t("untitled") } : null;
  }

  /** Read anew what may have changed meanwhile. */
  refresh() {
    this.#list.refresh();
    this.#inbox.refresh();
    if (this.#conversation.id) this.#load(this.#conversation);
  }

  /** The message box shows the send key. */
  preferencesChanged() {
    this.#composer.text = this.#composer.text;
  }

  /** Find a text in the open conversation. */
  async find() {
    const { id } = this.#conversation;
    if (!id) return;
    const { openFind } = await import("/static/find-dialog.js");
    openFind(id, (turnId) => this.open(id, { turnId }));
  }

  /** Go to what waits for an answer. */
  review() {
    this.#inbox.review();
  }

  #changed() {
    this.#list.refresh();
    tellOtherTabs();
  }

  #openAddress(start = USUAL_START) {
    this.open(conversationInAddress(), { fromAddress: true, turnId: turnInAddress(), start });
  }

  /** Show a conversation, at one of its turns if that is named; null is one that the first message will start. */
  open(id, { fromAddress = false, turnId = null, start = USUAL_START } = {}) {
    this.#drawer.close();
    if (this.#conversation && this.#conversation.id === id && id) {
      if (turnId) this.#reveal(this.#conversation, turnId);
      return;
    }
    this.#conversation?.close();
    this.#error.clear();
    this.#showConnected(true);
    const conversation = new Conversation(id, this.#ears(() => this.#conversation === conversation), start);
    this.#conversation = conversation;
    if (!id) keepStart(start);
    if (!fromAddress) setAddress(id);
    this.#list.current = id;
    this.#transcript.show(conversation, id ? null : this.#welcome);
    this.#composer.open(id, recoverText(id));
    this.#memory.show(conversation);
    this.#details.show(conversation);
    showFilesOf(conversation);
    this.#inbox.draw();
    this.#showActivity();
    this.#showTitle();
    this.#composer.focus();
    if (id) this.#load(conversation, turnId);
  }

  async #reveal(conversation, turnId) {
    try {
      await this.#transcript.reveal(turnId);
    } catch (error) {
      if (this.#conversation === conversation && error.name !== "AbortError") this.#error.show(error, () => this.#reveal(conversation, turnId));
    }
  }

  /** False if they could not be read. */
  async #loadEarlier(conversation) {
    try {
      await conversation.loadEarlier();
      return true;
    } catch (error) {
      if (this.#conversation === conversation) this.#error.show(error);
      return false;
    }
  }

  async #load(conversation, turnId = null) {
    try {
      await conversation.load();
      this.#titles.take([conversation]);
      if (this.#conversation === conversation) this.#showTitle();
      if (conversation.turns.some((turn) => turn.segments.some(isUntold))) this.#inbox.refresh();
      if (turnId && this.#conversation === conversation) await this.#reveal(conversation, turnId);
      if (this.#conversation === conversation && conversation.turns.length === 0) this.#transcript.show(conversation, this.#welcome);
    } catch (error) {
      if (this.#conversation !== conversation) return;
      if (error.status === 404) this.#gone();
      else if (error.name !== "AbortError") this.#error.show(error, () => this.#load(conversation, turnId));
    }
  }

  /** What an open conversation tells; one that was left tells nobody any more. */
  #ears(isOpen) {
    const whileOpen = (hear) => (...news) => { if (isOpen()) hear(...news); };
    return {
      turnsChanged: whileOpen((turn) => {
        this.#transcript.update(turn);
        this.#showActivity();
        if (!turn || turn.state === "completed") this.#details.draw();
      }),
      connected: whileOpen((isConnected) => this.#showConnected(isConnected)),
      identified: (conversation) => {
        moveUnsent(conversation);
        if (isOpen()) this.#identified(conversation.id);
      },
      settingsChanged: whileOpen(() => {
        this.#memory.draw();
        this.#details.draw();
      }),
      activity: () => this.#changed(),
      checksAnswers: () => this.#server.checksAnswers === true,
      completed: whileOpen((turn) => {
        announce(spokenEnd(turn.result));
        if (turn.segments.some(isUntold)) this.#inbox.refresh();
      }),
      approvalAsked: () => {
        this.#inbox.refresh();
        if (isOpen()) this.#inbox.offerKeys(byId("message"));
      },
      failed: whileOpen((error, retry) => this.#error.show(error, retry)),
      gone: whileOpen(() => this.#gone()),
    };
  }

  #identified(id) {
    keepDraft(null, "");
    keepDraft(id, this.#composer.text);
    this.#composer.moveAttached(id);
    keepStart(USUAL_START);
    setAddress(id, { replace: true });
    this.#list.current = id;
  }

  /** The open conversation was deleted: what is in the message box goes into a new one. */
  #gone() {
    const { text } = this.#composer;
    const cameBack = this.#cameBack;
    keepDraft(this.#conversation.id, "");
    this.#composer.moveAttached(null);
    this.open(null);
    this.#putBack(text);
    // Nobody has sent the rest yet.
    this.#cameBack = cameBack;
    this.#error.show({ code: "not_found", message: t("error_gone") });
  }

  // -- what a person does -----------------------------------------------------------------------

  async #send(text) {
    // An input method may have typed the slash in its wide form.
    if (text.normalize("NFKC").trim().toLowerCase() === "/clear") {
      keepDraft(this.#conversation.id, this.#composer.text);
      this.startNew();
      return;
    }
    const conversation = this.#conversation;
    const key = holdUnsent(conversation, text);
    keepDraft(conversation.id, this.#composer.text);
    this.#error.clear();
    this.#transcript.toLatest();
    this.#composer.focus();
    try {
      await conversation.send(text, key);
      releaseUnsent(conversation, key);
    } catch (error) {
      const isGone = error.status === 404 && conversation.id;
      // Somebody may have left it and come back meanwhile.
      if (isGone && this.#conversation.id === conversation.id) this.#gone();
      const isReturned = this.#conversation.id === conversation.id || (isGone && !this.#conversation.id);
      failUnsent(conversation, key, isReturned);
      if (!isReturned) return;
      this.#putBack(text);
      if (!isGone) this.#error.show(error, () => byId("composer").requestSubmit());
      // Whoever is at something else meanwhile stays there.
      if (document.activeElement === document.body) this.#composer.focus();
    }
  }

  /** The text of a message that was not taken goes into the box: behind one that came back before, and before what else is there. */
  #putBack(text) {
    const box = this.#composer.text;
    const isThere = this.#cameBack && `${box}\n`.startsWith(`${this.#cameBack}\n`);
    const [before, rest] = isThere ? [this.#cameBack, box.slice(this.#cameBack.length + 1)] : ["", box];
    this.#cameBack = [before, text].filter(Boolean).join("\n");
    this.#composer.text = [this.#cameBack, rest].filter(Boolean).join("\n");
    keepDraft(this.#conversation.id, this.#composer.text);
  }

  async #takeBack(turn) {
    const conversation = this.#conversation;
    const text = await conversation.takeBack(turn);
    if (text === null) return;
    // As in `#send`.
    if (this.#conversation.id !== conversation.id) {
      addToDraft(conversation.id, text);
      return;
    }
    this.#composer.text = [this.#composer.text, text].filter(Boolean).join("\n");
    keepDraft(this.#conversation.id, this.#composer.text);
    this.#composer.focus();
  }

  /** Go on as if a turn had been another one; what came of it stays in its own branch. */
  async #resend(turn, text) {
    if (!await this.#openFork(turn, { before: true }, () => this.#resend(turn, text))) return;
    if (recallEdit(turn.turnId) === text) keepEdit(turn.turnId, "");
    this.#send(text);
  }

  #branch(turn) {
    return this.#openFork(turn, { before: false }, () => this.#branch(turn));
  }

  async #openFork(turn, how, retry) {
    const from = this.#conversation;
    if (this.#forking === from) return false;
    this.#forking = from;
    try {
      const id = await forkConversation(from.id, turn.turnId, how);
      if (this.#conversation !== from) return false;
      this.open(id);
      this.#changed();
      return true;
    } catch (error) {
      if (this.#conversation === from) this.#error.show(error, retry);
      return false;
    } finally {
      if (this.#forking === from) this.#forking = null;
    }
  }

  async #answer(turn, approval, reply) {
    this.#composer.focus();
    await this.#conversation.answer(turn, approval, reply);
    this.#inbox.refresh();
  }

  /** Show a new conversation after this one; what this one may remember, it may, too. */
  startNew() {
    const { id, turns, settings } = this.#conversation;
    this.#drawer.close();
    if (!id || turns.length === 0) this.#composer.focus();
    else this.open(null, { start: { leaving: id, settings: settings ?? USUAL_START.settings } });
  }

  async #pin(conversation) {
    try {
      await pinConversation(conversation.id, !conversation.isPinned);
      this.#changed();
    } catch (error) {
      this.#error.show(error, () => this.#pin(conversation));
    }
  }

  async #rename(id, title) {
    const before = this.#titles.of(id);
    const renamed = this.#titles.rename(id, title);
    this.#list.amend(id, { title });
    this.#showTitle();
    try {
      await renamed;
      this.#changed();
    } catch (error) {
      this.#list.amend(id, { title: before });
      this.#titles.take([{ id, title: before }]);
      this.#showTitle();
      this.#error.show(error, () => this.#rename(id, title));
    }
  }

  async #remove(conversation, isBranched) {
    const title = showHidden(conversation.title) || t("untitled");
    const body = t(isBranched ? "delete_branches_body" : "delete_body", { title });
    const isMeant = await confirmDialog({ title: t("delete_title"), body, confirm: t("delete_confirm") });
    if (!isMeant) return;
    try {
      if (isBranched) await this.#removeBranches(conversation.id);
      await deleteConversation(conversation.id);
    } catch (error) {
      if (error.status !== 404) {
        this.#error.show(error, () => this.#remove(conversation, isBranched));
        return;
      }
    }
    this.#list.drop(conversation);
    keepDraft(conversation.id, "");
    this.#composer.forgetAttached(conversation.id);
    if (this.#conversation.id === conversation.id) this.open(null);
    else this.#composer.focus();
    this.#changed();
  }

  /** Those that go on alike are named once: asked again, the others come. */
  async #removeBranches(conversationId) {
    for (let branches = await listBranches(conversationId); branches.length; branches = await listBranches(conversationId)) {
      for (const branch of branches) await deleteConversation(branch.conversationId);
    }
  }

  // -- what is shown ----------------------------------------------------------------------------

  #listRefreshed() {
    const { id, turns } = this.#conversation;
    const summary = this.#list.find(id);
    this.#titles.take(this.#list.all);
    // Its first turn has made a title that a list of what was searched for does not show.
    if (id && !summary && turns.length && !this.#titles.of(id)) this.#titles.read(id);
    this.#inbox.draw();
    this.#showTitle();
    if (summary) this.#conversation.settings = summary.settings;
    // Somebody else, another tab perhaps, goes on with this conversation.
    if (summary && !this.#conversation.isBusy && (summary.state !== "idle" || summary.turnCount > this.#conversation.turnCount)) {
      this.#conversation.load().catch(() => {});
    }
  }

  #showActivity() {
    const active = this.#conversation.activeTurn;
    this.#composer.showActivity({ isBusy: this.#conversation.isBusy, canStop: Boolean(active), isStopping: active?.state === "stopping" });
  }

  #showTitle() {
    byId("find").hidden = !this.#conversation.id;
    const title = showHidden(this.#titles.of(this.#conversation.id));
    setText(byId("title"), title || t("untitled"));
    setPageTitle(title ? `${title} · Candor` : "Candor");
  }

  #showConnected(isConnected) {
    setText(byId("connection"), isConnected ? "" : t("reconnecting"));
    byId("connection").classList.toggle("is-on", !isConnected);
  }
}
