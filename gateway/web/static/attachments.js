// Files that go with the next message: chosen, dropped or pasted, stored in the workspace and named in the text.

import { announce } from "/static/announcer.js";
import { AttachmentChip } from "/static/attachment-chip.js";
import { place } from "/static/dom.js";
import { keepAttached, recallAttached } from "/static/drafts.js";
import { t } from "/static/i18n.js";
import { uploadFile } from "/static/routes.js";

const hasFiles = (transfer) => [...(transfer?.types ?? [])].includes("Files");
const quoted = (path) => (path.includes("`") ? JSON.stringify(path) : `\`${path}\``);

export class Attachments {
  #row;
  #on;
  #lists = new Map();
  #key = null;
  #isLeft = false;

  /** `row` takes the chips; `field` is pasted into, `button` and `input` choose. `on`: changed(), removed(isLast), failed(error, retry). */
  constructor({ row, field, button, input }, on) {
    this.#row = row;
    this.#on = on;
    button.addEventListener("click", () => input.click());
    input.addEventListener("change", () => {
      this.add([...input.files]);
      input.value = "";
      field.focus();
    });
    field.addEventListener("paste", (event) => {
      const files = [...(event.clipboardData?.files ?? [])];
      // A copied cell or paragraph brings a picture of itself along: its text is what is meant.
      if (!files.length || event.clipboardData.getData("text/plain")) return;
      event.preventDefault();
      this.add(files);
    });
    // A browser that leaves the page ends its requests: what was being uploaded is told of by the next page.
    addEventListener("pagehide", () => { this.#isLeft = true; });
    addEventListener("pageshow", () => { this.#isLeft = false; });
    this.#listenForDrops();
  }

  #listenForDrops() {
    const over = (isOver) => document.body.classList.toggle("is-dropping", isOver);
    addEventListener("dragover", (event) => {
      if (!hasFiles(event.dataTransfer)) return;
      event.preventDefault();
      over(!document.querySelector("dialog[open]"));
    });
    addEventListener("dragleave", (event) => { if (event.relatedTarget === null) over(false); });
    addEventListener("drop", (event) => {
      if (!hasFiles(event.dataTransfer)) return;
      // Else the browser would leave the page for the file.
      event.preventDefault();
      over(false);
      if (!document.querySelector("dialog[open]")) this.add([...event.dataTransfer.files]);
    });
  }

  get #chips() {
    return this.#lists.get(this.#key) ?? [];
  }

  #turnTo(conversationId) {
    this.#key = conversationId;
    if (!this.#lists.has(conversationId)) this.#lists.set(conversationId, this.#recalled());
  }

  /** What was attached before a reload, which cuts uploads off. */
  #recalled() {
    const files = recallAttached(this.#key);
    const lost = files.filter(({ path }) => path === null).map(({ name }) => name);
    if (lost.length) this.#on.failed({ code: "upload_cut_off", message: t("upload_cut_off", { names: lost.join(t("list_comma")) }) });
    return files.filter(({ path }) => path !== null).map(({ name, path }) => this.#chip(name, path));
  }

  /** Show what was attached in a conversation; null is one that is not begun. */
  open(conversationId) {
    this.#turnTo(conversationId);
    this.#draw();
  }

  /** What is attached here belongs to another conversation from now on: the one that begins, or a new one. */
  move(conversationId) {
    const moved = this.#chips.splice(0);
    this.#turnTo(conversationId);
    this.#chips.unshift(...moved);
    this.#draw();
  }

  /** A conversation was deleted. */
  forget(conversationId) {
    this.#lists.delete(conversationId);
    keepAttached(conversationId, []);
  }

  get isUploading() {
    return this.#chips.some((chip) => chip.path === null);
  }

  get isEmpty() {
    return this.#chips.length === 0;
  }

  /** The words that name the files to the agent; they are no longer attached then. */
  take() {
    const paths = this.#chips.splice(0).map((chip) => quoted(chip.path));
    this.#draw();
    return paths.length ? t("attached_files", { paths: paths.join(t("list_comma")) }) : "";
  }

  /** Attach a file that is in the workspace already. */
  addPath(path) {
    if (!this.#chips.some((chip) => chip.path === path)) this.#chips.push(this.#chip(path, path));
    this.#draw();
  }

  /** Upload files one after the other: a browser has few connections to a host, and each file may be refused. */
  async add(files) {
    if (!files.length) return;
    const conversationId = this.#key;
    const added = files.map((file) => this.#chip(file.name, null));
    this.#chips.push(...added);
    this.#draw();
    const failures = [];
    for (const [index, file] of files.entries()) {
      const chip = added[index];
      try {
        const { name, path } = await uploadFile(file, conversationId, chip.signal);
        chip.update(name, path);
      } catch (error) {
        if (this.#isLeft || chip.signal.aborted) continue;
        failures.push({ file, error });
        this.#tell(failures);
        for (const [id, chips] of this.#lists) this.#lists.set(id, chips.filter((other) => other !== chip));
      }
      this.#draw();
    }
    const names = added.filter((chip) => chip.path).map((chip) => chip.name);
    if (names.length) announce(t("attached", { names: names.join(t("list_comma")) }));
  }

  /** Say which files were not stored, and why; those that may be stored later are offered again. */
  #tell(failures) {
    const message = failures.map(({ file, error }) => t("upload_failed", { name: file.name, message: error.message })).join(t("space"));
    const isFinal = failures.every(({ error }) => error.isFinal);
    const again = () => this.add(failures.splice(0).filter(({ error }) => !error.isFinal).map(({ file }) => file));
    this.#on.failed({ ...failures.at(-1).error, message, isFinal }, again);
  }

  #chip(name, path) {
    return new AttachmentChip(name, path, (chip) => this.#remove(chip));
  }

  #remove(chip) {
    const chips = this.#chips;
    const index = chips.indexOf(chip);
    chips.splice(index, 1);
    this.#on.removed(chips.length === 0);
    this.#draw();
    (chips[index] ?? chips.at(-1))?.focus();
  }

  #draw() {
    const chips = this.#chips;
    this.#row.hidden = chips.length === 0;
    place(this.#row, chips.map((chip) => chip.element));
    for (const [id, attached] of this.#lists) keepAttached(id, attached);
    this.#on.changed();
  }
}
