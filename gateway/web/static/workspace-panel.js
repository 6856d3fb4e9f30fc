// The workspace's files: a tree beside the file that is looked at.

import { el, setText } from "/static/dom.js";
import { openDialog } from "/static/dialog.js";
import { download } from "/static/download.js";
import { FileTree } from "/static/file-tree.js";
import { formatFull, formatSize } from "/static/format.js";
import { t } from "/static/i18n.js";
import { icon } from "/static/icons.js";
import { findFiles, readWorkspaceFile } from "/static/routes.js";
import { numberedCode } from "/static/tool-block.js";
import { workspaceImage } from "/static/tool-image.js";
import { showHidden } from "/static/visible.js";

// What is larger is only offered as a download.
const MAX_SHOWN_BYTES = 400_000;
const IMAGE = /\.(?:png|jpe?g|gif|webp)$/iu;
const MAX_IMAGE_BYTES = 10_000_000;

const toolButton = (shape, words, testId, onclick) => el("button", { class: "icon-button", type: "button", title: words, "aria-label": words, "data-testid": testId, onclick }, icon(shape));

/** What is shown of a file. */
async function contentOf(entry, signal) {
  if (IMAGE.test(entry.name) && entry.size_bytes <= MAX_IMAGE_BYTES) return workspaceImage(entry.path);
  if (entry.size_bytes > MAX_SHOWN_BYTES) return el("p", { class: "quiet" }, t("file_too_large"));
  const response = await readWorkspaceFile(entry.path, signal);
  if (!response.headers.get("Content-Type")?.startsWith("text/")) return el("p", { class: "quiet" }, t("file_binary"));
  const lines = (await response.text()).replace(/\n$/u, "").split("\n");
  return numberedCode(lines, lines.map((_, index) => index + 1), entry.path);
}

class FileView {
  #reading = null;
  #name = el("bdi", { class: "file-title" });
  #facts = el("span", { class: "file-facts" });
  #body = el("div", { class: "file-body", tabindex: "0", role: "region", "data-testid": "file-body" });
  element = el("section", { class: "file-view" });

  /** `on`: back(), attach(path). */
  constructor(on) {
    this.on = on;
    this.element.append(el("p", { class: "quiet file-hint" }, icon("folder"), t("choose_file")));
  }

  async show(entry) {
    this.#reading?.abort();
    this.#reading = new AbortController();
    const { signal } = this.#reading;
    setText(this.#name, showHidden(entry.path));
    setText(this.#facts, [formatSize(entry.size_bytes), formatFull(entry.modified_at)].join(" · "));
    this.#body.setAttribute("aria-label", showHidden(entry.path));
    this.#body.replaceChildren(el("p", { class: "quiet" }, t("loading")));
    this.element.replaceChildren(
      el("div", { class: "file-head" },
        toolButton("chevron", t("back_to_files"), "file-back", () => this.on.back()),
        el("div", { class: "file-what" }, this.#name, this.#facts),
        toolButton("clip", t("attach_to_message"), "file-attach", () => this.on.attach(entry.path)),
        toolButton("download", t("download"), "file-download", () => this.#save(entry))),
      this.#body);
    const node = await contentOf(entry, signal).catch((error) => el("p", { class: "quiet", role: "alert" }, showHidden(error.message)));
    if (!signal.aborted) this.#body.replaceChildren(node);
  }

  async #save(entry) {
    try {
      download(entry.name, await (await readWorkspaceFile(entry.path)).blob());
    } catch (error) {
      this.#body.replaceChildren(el("p", { class: "quiet", role: "alert" }, showHidden(error.message)));
    }
  }
}

/** `attach(path)` adds a file to the message that is being written; `path` is a file to begin with. */
export function openWorkspace({ path = null, attach }) {
  const close = toolButton("close", t("close"), "files-close", () => dialog.close());
  const search = el("input", { type: "search", class: "files-search", placeholder: t("find_files"), "aria-label": t("find_files"), autocomplete: "off", spellcheck: "false", "data-testid": "files-search" });
  const frame = el("div", { class: "files-frame", "data-testid": "files-panel" });
  const view = new FileView({
    back: () => frame.classList.remove("is-reading"),
    attach: (attached) => {
      dialog.close();
      attach(attached);
    },
  });
  const show = (entry) => {
    frame.classList.add("is-reading");
    view.show(entry);
  };
  const tree = new FileTree({ open: show });
  let timer = null;
  search.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(() => tree.show(search.value.trim()), 150);
  });
  frame.append(
    el("div", { class: "log-head" }, el("div", { class: "log-title" }, el("h2", {}, t("workspace"))), toolButton("retry", t("refresh"), "files-refresh", () => tree.show(search.value.trim())), close),
    el("div", { class: "files-body" }, el("nav", { class: "files-side", "aria-label": t("workspace") }, search, tree.element), view.element));
  const dialog = openDialog({ label: t("workspace"), className: "log files", content: frame });
  tree.show();
  if (path) findFiles(path, 50).then((entries) => entries.find((entry) => entry.path === path)).then((entry) => entry && show(entry)).catch(() => {});
  return dialog;
}
