// The workspace's folders and files as a list of buttons; a folder is read when it is opened.

import { el } from "/static/dom.js";
import { t } from "/static/i18n.js";
import { icon } from "/static/icons.js";
import { findFiles, listFolder } from "/static/routes.js";
import { showHidden } from "/static/visible.js";

const MAX_FOUND = 100;

export class FileTree {
  #chosen = null;
  #on;
  element = el("div", { class: "file-tree", "data-testid": "file-tree" });

  /** `on`: open(entry). */
  constructor(on) {
    this.#on = on;
  }

  /** Show the workspace or, with words, the files that they find. */
  async show(query = "") {
    await this.#fill(this.element, () => (query ? findFiles(query, MAX_FOUND) : listFolder("")), query !== "");
  }

  async #fill(parent, read, isFound = false) {
    parent.replaceChildren(el("p", { class: "quiet" }, t("loading")));
    const asked = Symbol("asked");
    parent.asked = asked;
    const nodes = await read().then(
      (entries) => (entries.length ? [el("ul", {}, entries.map((entry) => this.#row(entry, isFound)))] : [el("p", { class: "quiet" }, t(isFound ? "no_files_found" : "folder_empty"))]),
      (error) => [el("p", { class: "quiet", role: "alert" }, showHidden(error.message))]);
    if (parent.asked === asked) parent.replaceChildren(...nodes);
  }

  #row(entry, isFound) {
    const isFolder = entry.kind === "folder";
    const button = el("button", {
      class: "file-row", type: "button", "data-testid": "file-row", "data-path": entry.path, disabled: !entry.readable,
      title: entry.readable ? showHidden(entry.path) : t("file_denied"), "aria-expanded": isFolder ? "false" : null,
    }, isFolder ? icon("chevron") : el("span", { class: "file-gap" }), icon(entry.readable ? (isFolder ? "folder" : "file") : "shield"), el("bdi", { class: "file-name" }, showHidden(isFound ? entry.path : entry.name)));
    const item = el("li", {}, button);
    button.addEventListener("click", () => (isFolder ? this.#toggle(item, button, entry) : this.#choose(button, entry)));
    return item;
  }

  #choose(button, entry) {
    this.#chosen?.removeAttribute("aria-current");
    this.#chosen = button;
    button.setAttribute("aria-current", "true");
    this.#on.open(entry);
  }

  #toggle(item, button, entry) {
    const isOpen = button.getAttribute("aria-expanded") === "true";
    button.setAttribute("aria-expanded", String(!isOpen));
    if (isOpen) {
      item.lastChild.remove();
      return;
    }
    const below = el("div", { class: "file-branch" });
    item.append(below);
    this.#fill(below, () => listFolder(entry.path));
  }
}
