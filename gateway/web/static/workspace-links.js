// Links and pictures in a text that name files of the workspace.

import { el } from "/static/dom.js";
import { fileAddress, readWorkspaceFile } from "/static/routes.js";

const MAX_PICTURE_BYTES = 20_000_000;

async function save(path) {
  const url = URL.createObjectURL(await (await readWorkspaceFile(path)).blob());
  el("a", { href: url, download: path.split("/").at(-1) }).click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

/** Let a link open its file: whoever shows files takes the event `candor:open-file`; else it is saved. */
export function linkFile(link) {
  const { path } = link.dataset;
  link.href = `.${fileAddress(path)}`;
  link.title = path;
  link.addEventListener("click", (event) => {
    event.preventDefault();
    const asked = new CustomEvent("candor:open-file", { bubbles: true, cancelable: true, detail: { path } });
    if (link.dispatchEvent(asked)) save(path).catch(() => link.classList.add("is-missing"));
  });
}

/** Put the picture in the place of its link; where it is none, a link to the file stays. */
export async function showImage(link) {
  link.dataset.path = link.dataset.image;
  delete link.dataset.image;
  linkFile(link);
  try {
    const picture = await (await readWorkspaceFile(link.dataset.path)).blob();
    if (!picture.type.startsWith("image/") || picture.size > MAX_PICTURE_BYTES) return;
    const src = URL.createObjectURL(picture);
    const words = link.textContent;
    const drop = () => URL.revokeObjectURL(src);
    const isNone = () => {
      drop();
      link.replaceChildren(words);
    };
    const image = el("img", { class: "picture", src, alt: words, onload: drop, onerror: isNone });
    link.replaceChildren(image);
  } catch {
    link.classList.add("is-missing");
  }
}
