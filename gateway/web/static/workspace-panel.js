// The workspace's files: a tree beside the file that is looked at.

import { el, setText } from "/static/dom.js";
import { openDialog } from "/static/dialog.js";
import { download } from "/static/download.js";
import { FileTree } from "/static/file-tree.js";
import { formatFull, formatSize } from "/static/format.js";
import { t } from "/static/i18n.js";
import { icon } from "/static/icons.js";
import { findFiles, listFolder, readWorkspaceFile } from "/static/routes.js";
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

const problem = (words) => el("p", { class: "quiet", role: "alert" }, showHidden(words));

/** The entry of a path, null if there is none. The list of a large folder is cut; a search leaves out folders whose name begins with a dot. */
async function entryOf(path) {
  const named = (entries) => entries.find((entry) => entry.path === path);
  const folder = path.split("/").slice(0, -1).join("/");
  try {
    return named(await listFolder(folder)) ?? named(await findFiles(path, 50)) ?? null;
  } catch (error) {
    if (error.status === 404) return null;
    throw error;
  }
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
    const signal = this.#draw(entry.path, [formatSize(entry.size_bytes), formatFull(entry.modified_at)].join(" · "),
      toolButton("clip", t("attach_to_message"), "file-attach", () => this.on.attach(entry.path)),
      toolButton("download", t("download"), "file-download", () => this.#save(entry)));
    this.#body.replaceChildren(el("p", { class: "quiet" }, t("loading")));
    const node = await contentOf(entry, signal).catch((error) => problem(error.message));
    if (!signal.aborted) this.#body.replaceChildren(node);
  }

  /** Say why there is no file to show. */
  refuse(path, words) {
    this.#draw(path, "");
    this.#body.replaceChildren(problem(words));
  }

  /** Returns the signal that ends when something else is shown. */
  #draw(path, facts, ...tools) {
    this.#reading?.abort();
    this.#reading = new AbortController();
    setText(this.#name, showHidden(path));
    setText(this.#facts, facts);
    this.#body.setAttribute("aria-label", showHidden(path));
    this.element.replaceChildren(
      el("div", { class: "file-head" },
        toolButton("chevron", t("back_to_files"), "file-back", () => this.on.back()),
        el("div", { class: "file-what" }, this.#name, this.#facts), tools),
      this.#body);
    return this.#reading.signal;
  }

  async #save(entry) {
    try {
      download(entry.name, await (await readWorkspaceFile(entry.path)).blob());
    } catch (error) {
      this.#body.replaceChildren(problem(error.message));
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
  const refuse = (words) => {
    frame.classList.add("is-reading");
    view.refuse(path, words);
  };
  async function openPath(named) {
    try {
      const entry = await entryOf(named);
      if (entry?.kind === "folder") {
        search.value = `${named}/`;
        tree.show(search.value);
      } else if (entry) show(entry);
      else refuse(t("file_missing", { path }));
    } catch (error) {
      refuse(error.message);
    }
  }
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
  if (path) openPath(path.replace(/\/+$/u, ""));
  return dialog;
}
