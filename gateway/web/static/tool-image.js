// A picture of the workspace, as it is now. It is read with the reader's own token, which an address cannot carry.

import { el } from "/static/dom.js";
import { t } from "/static/i18n.js";
import { readWorkspaceFile } from "/static/routes.js";
import { showHidden } from "/static/visible.js";

const asAddress = (blob) => new Promise((resolve, reject) => {
  const reader = new FileReader();
  reader.addEventListener("load", () => resolve(reader.result));
  reader.addEventListener("error", () => reject(reader.error));
  reader.readAsDataURL(blob);
});

export function workspaceImage(path) {
  const words = el("figcaption", {}, t("loading"));
  const figure = el("figure", { class: "tool-image" }, words);
  readWorkspaceFile(path).then((response) => response.blob()).then((blob) => {
    if (!blob.type.startsWith("image/")) throw new Error(t("tool_image_gone"));
    return asAddress(blob);
  }).then((address) => {
    words.textContent = t("tool_image_now", { path: showHidden(path) });
    const image = el("img", { src: address, alt: showHidden(path), onerror: () => {
      image.remove();
      words.textContent = t("tool_image_unreadable");
    } });
    figure.prepend(image);
  }).catch((error) => { words.textContent = error.message ?? String(error); });
  return figure;
}
