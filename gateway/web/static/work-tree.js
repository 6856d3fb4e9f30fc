// The work tree of a conversation: what differs in it, and its way into the workspace or out of the world.

import { requestJson } from "/static/api.js";
import { fileViews, changesFrame } from "/static/changes-dialog.js";
import { openDialog } from "/static/dialog.js";
import { el, setText } from "/static/dom.js";
import { t } from "/static/i18n.js";
import { icon } from "/static/icons.js";
import { showHidden } from "/static/visible.js";

const routeOf = (id, ...more) => `/${["conversations", encodeURIComponent(id), "worktree", ...more].join("/")}`;

/** The line of a conversation's details that opens its work tree, and `closed()` when that is left; null where it has none. */
export async function workTreeLine(id, signal, closed) {
  const tree = await requestJson(routeOf(id), { signal });
  if (tree.state !== "own") return null;
  const count = tree.files.length;
  return el("div", { class: "details-tree", "data-testid": "work-tree" },
    el("p", {}, t("tree_own", { branch: tree.branch })),
    el("button", { class: "button small", type: "button", "aria-haspopup": "dialog", "data-testid": "work-tree-open", onclick: () => openTree(id, closed) },
      icon("pencil"), el("span", {}, count ? t(count === 1 ? "file_changed" : "files_changed", { count }) : t("file_none_changed"))));
}

class Tree {
  #id;
  #list = el("div", { class: "changes", "data-testid": "work-tree-changes" });
  #state = el("p", { class: "change-note", role: "status", "data-testid": "work-tree-state" });
  #merge = el("button", { class: "button primary", type: "button", "data-testid": "work-tree-merge", onclick: () => this.#run(() => this.#mergeNow()) }, t("tree_merge"));
  #discard = el("button", { class: "button", type: "button", "data-testid": "work-tree-discard", onclick: () => this.#ask(true) }, t("tree_discard"));
  #keep = el("button", { class: "link-button", type: "button", onclick: () => this.#ask(false) }, t("tree_keep"));
  #sure = el("button", { class: "link-button is-danger", type: "button", "data-testid": "work-tree-discard-confirm", onclick: () => this.#run(() => this.#discardNow()) }, t("tree_discard_confirm"));
  #question = el("span", { class: "forget-question", hidden: true }, t("tree_discard_sure"), this.#sure, this.#keep);
  element;

  constructor(id) {
    this.#id = id;
    this.element = el("div", { class: "tree-frame" }, el("div", { class: "tree-actions" }, this.#merge, this.#discard, this.#question), this.#state, this.#list);
  }

  #ask(isAsking) {
    this.#discard.hidden = isAsking;
    this.#question.hidden = !isAsking;
    (isAsking ? this.#keep : this.#discard).focus();
  }

  async read() {
    const tree = await requestJson(routeOf(this.#id));
    const isOwn = tree.state === "own";
    const isChanged = isOwn && tree.files.length > 0;
    setText(this.#merge, tree.target ? t("tree_merge_into", { branch: showHidden(tree.target) }) : t("tree_merge"));
    this.#merge.disabled = !isChanged || !tree.target;
    this.#discard.disabled = !isOwn;
    this.#list.replaceChildren(...isChanged ? fileViews(tree) : [el("p", { class: "quiet" }, t("file_none_changed"))]);
  }

  async #run(act) {
    this.#merge.disabled = this.#sure.disabled = true;
    setText(this.#state, "");
    try {
      const told = await act();
      await this.read();
      setText(this.#state, told);
    } catch (error) {
      setText(this.#state, showHidden([error.message, ...error.files ?? []].join(" · ")));
      this.#merge.disabled = false;
    }
    this.#sure.disabled = false;
    this.#ask(false);
  }

  async #mergeNow() {
    const { files } = await requestJson(routeOf(this.#id, "merge"), { method: "POST" });
    return t("tree_merged", { count: files });
  }

  async #discardNow() {
    await requestJson(routeOf(this.#id), { method: "DELETE" });
    return t("tree_discarded");
  }
}

function openTree(id, closed) {
  const tree = new Tree(id);
  const { content, close, fail } = changesFrame(t("tree_title"), t("tree_means"), tree.element);
  const dialog = openDialog({ label: t("tree_title"), className: "log", content, onClose: closed });
  close.addEventListener("click", () => dialog.close());
  tree.read().catch(fail);
}
