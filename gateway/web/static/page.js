// The page: one open conversation between the list and the message box.

import { announce, announceUrgently } from "/static/announcer.js";
import { conversationInAddress, setAddress } from "/static/address.js";
import { Composer } from "/static/composer.js";
import { confirmDialog } from "/static/dialog.js";
import { Conversation } from "/static/conversation.js";
import { ConversationList } from "/static/conversation-list.js";
import { byId, setText } from "/static/dom.js";
import { failUnsent, holdUnsent, keepDraft, recoverText, releaseUnsent } from "/static/drafts.js";
import { Drawer } from "/static/drawer.js";
import { ErrorLine } from "/static/error-line.js";
import { t } from "/static/i18n.js";
import { plainText } from "/static/markdown.js";
import { openLog } from "/static/log-dialog.js";
import { MemoryButton } from "/static/memory-button.js";
import { USUAL_SETTINGS, changeBetween } from "/static/memory-settings.js";
import { deleteConversation, newConversation, newConversationWith, renameConversation } from "/static/routes.js";
import { Scroll } from "/static/scroll.js";
import { Transcript } from "/static/transcript.js";
import { showHidden } from "/static/visible.js";
import { onOtherTabs, tellOtherTabs } from "/static/tabs.js";
import { welcome } from "/static/welcome.js";

export class Page {
  #conversation = null;
  #drawer = new Drawer();
  #error = new ErrorLine(byId("error-slot"));
  #memory = new MemoryButton(byId("memory"), { failed: (error, retry) => this.#error.show(error, retry) });
  #scroll = new Scroll(byId("scroller"), byId("transcript"), byId("jump-latest"));
  #welcome = welcome((text) => this.#send(text));
  #transcript = new Transcript(byId("transcript"), this.#scroll, {
    takeBack: (turn) => this.#takeBack(turn),
    answer: (...reply) => this.#answer(...reply),
    openLog,
    loadEarlier: (conversation) => conversation.loadEarlier().catch((error) => this.#error.show(error)),
  });
  #composer = new Composer(
    { form: byId("composer"), field: byId("message"), send: byId("send"), stop: byId("stop"), stopWords: byId("stop-words"), hint: byId("composer-hint") },
    { send: (text) => this.#send(text), stop: () => this.#conversation.stop(), edited: (text) => keepDraft(this.#conversation.id, text) },
  );
  #list = new ConversationList(
    { list: byId("conversation-list"), end: byId("conversation-list-end"), search: byId("search") },
    {
      open: (id) => this.open(id),
      rename: (id, title) => this.#rename(id, title),
      remove: (conversation) => this.#remove(conversation),
      failed: (error, retry) => this.#error.show(error, retry),
      refreshed: (conversations) => this.#listRefreshed(conversations),
    },
  );

  start() {
    addEventListener("popstate", () => this.open(conversationInAddress(), { fromAddress: true }));
    byId("new-conversation").addEventListener("click", () => this.startNew());
    byId("skip").addEventListener("click", (event) => {
      // The address names the conversation; followed as a link this would leave it.
      event.preventDefault();
      byId("message").focus();
    });
    this.open(conversationInAddress(), { fromAddress: true });
    onOtherTabs(() => this.#list.refresh());
    this.#list.refresh();
  }

  #changed() {
    this.#list.refresh();
    tellOtherTabs();
  }

  /** Show a conversation; null is one that the first message will start. */
  open(id, { fromAddress = false } = {}) {
    this.#drawer.close();
    if (this.#conversation && this.#conversation.id === id && id) return;
    this.#conversation?.close();
    this.#error.clear();
    this.#showConnected(true);
    const conversation = new Conversation(id, this.#ears(() => this.#conversation === conversation));
    this.#conversation = conversation;
    if (!fromAddress) setAddress(id);
    this.#list.current = id;
    this.#transcript.show(conversation, id ? null : this.#welcome);
    this.#composer.text = recoverText(id);
    this.#memory.show(conversation);
    this.#showActivity();
    this.#showTitle();
    this.#composer.focus();
    if (id) this.#load(conversation);
  }

  async #load(conversation) {
    try {
      await conversation.load();
      if (this.#conversation === conversation && conversation.turns.length === 0) this.#transcript.show(conversation, this.#welcome);
    } catch (error) {
      if (this.#conversation !== conversation) return;
      if (error.status === 404) this.#gone();
      else if (error.name !== "AbortError") this.#error.show(error, () => this.#load(conversation));
    }
  }

  /** What an open conversation tells; one that was left tells nobody any more. */
  #ears(isOpen) {
    const whileOpen = (hear) => (...news) => { if (isOpen()) hear(...news); };
    return {
      turnsChanged: whileOpen((turn) => {
        this.#transcript.update(turn);
        this.#showActivity();
      }),
      connected: whileOpen((isConnected) => this.#showConnected(isConnected)),
      identified: whileOpen((id) => this.#identified(id)),
      settingsChanged: whileOpen(() => this.#memory.draw()),
      activity: () => this.#changed(),
      completed: whileOpen((turn) => announce(t("reply_ready", { text: plainText(turn.result.reply ?? "") }))),
      approvalAsked: whileOpen((approval) => announceUrgently(t("approval_waits", { name: showHidden(approval.name), summary: showHidden(approval.summary) }))),
      failed: whileOpen((error, retry) => this.#error.show(error, retry)),
      gone: whileOpen(() => this.#gone()),
    };
  }

  #identified(id) {
    keepDraft(null, "");
    keepDraft(id, this.#composer.text);
    setAddress(id, { replace: true });
    this.#list.current = id;
  }

  #gone() {
    this.open(null);
    this.#error.show({ code: "not_found", message: t("error_gone") });
  }

  // -- what a person does -----------------------------------------------------------------------

  async #send(text) {
    if (text.trim().toLowerCase() === "/clear") {
      keepDraft(this.#conversation.id, this.#composer.text);
      await this.startNew();
      return;
    }
    const conversation = this.#conversation;
    const from = conversation.id;
    const key = holdUnsent(from, text);
    keepDraft(from, this.#composer.text);
    this.#error.clear();
    this.#scroll.toEnd();
    this.#composer.focus();
    try {
      await conversation.send(text, key);
      releaseUnsent(from, key);
    } catch (error) {
      const isHere = this.#conversation === conversation;
      failUnsent(from, key, isHere);
      if (isHere) this.#giveBack(text, error);
    }
  }

  /** The message was not taken: its text goes back into the box, before what was typed since. */
  #giveBack(text, error) {
    this.#composer.text = [text, this.#composer.text].filter(Boolean).join("\n");
    keepDraft(this.#conversation.id, this.#composer.text);
    this.#error.show(error, () => byId("composer").requestSubmit());
    this.#composer.focus();
  }

  async #takeBack(turn) {
    const text = await this.#conversation.takeBack(turn);
    if (text === null) return;
    this.#composer.text = [this.#composer.text, text].filter(Boolean).join("\n");
    keepDraft(this.#conversation.id, this.#composer.text);
    this.#composer.focus();
  }

  #answer(turn, approval, decision, remember) {
    this.#conversation.answer(turn, approval, decision, remember);
    this.#composer.focus();
  }

  async startNew() {
    const leaving = this.#conversation;
    this.#drawer.close();
    if (!leaving.id || leaving.turns.length === 0) {
      this.#composer.focus();
      return;
    }
    try {
      this.open(await this.#newAfter(leaving));
      this.#changed();
    } catch (error) {
      this.#error.show(error, () => this.startNew());
    }
  }

  /** What a conversation may remember, the one that follows it may, too. */
  async #newAfter(leaving) {
    // Being left ends a conversation's agent at once; one that is still at work is let finish.
    if (!leaving.isBusy) return newConversation(leaving.id);
    const change = changeBetween(USUAL_SETTINGS, leaving.settings ?? USUAL_SETTINGS);
    return change ? (await newConversationWith(change)).id : newConversation(null);
  }

  async #rename(id, title) {
    const before = this.#list.titleOf(id);
    this.#list.amend(id, { title });
    this.#showTitle();
    try {
      await renameConversation(id, title);
      tellOtherTabs();
    } catch (error) {
      this.#list.amend(id, { title: before });
      this.#showTitle();
      this.#error.show(error, () => this.#rename(id, title));
    }
  }

  async #remove(conversation) {
    const title = showHidden(conversation.title) || t("untitled");
    const isMeant = await confirmDialog({ title: t("delete_title"), body: t("delete_body", { title }), confirm: t("delete_confirm") });
    if (!isMeant) return;
    try {
      await deleteConversation(conversation.id);
    } catch (error) {
      if (error.status !== 404) {
        this.#error.show(error, () => this.#remove(conversation));
        return;
      }
    }
    this.#list.drop(conversation.id);
    keepDraft(conversation.id, "");
    if (this.#conversation.id === conversation.id) this.open(null);
    else this.#composer.focus();
    this.#changed();
  }

  // -- what is shown ----------------------------------------------------------------------------

  #listRefreshed(conversations) {
    this.#showTitle();
    const summary = conversations.find((conversation) => conversation.id === this.#conversation.id);
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
    const title = this.#conversation.id ? showHidden(this.#list.titleOf(this.#conversation.id) ?? "") : "";
    setText(byId("title"), title || t("untitled"));
    document.title = title ? `${title} · Candor` : "Candor";
  }

  #showConnected(isConnected) {
    setText(byId("connection"), isConnected ? "" : t("reconnecting"));
    byId("connection").classList.toggle("is-on", !isConnected);
  }
}
