// Pictures of the workspace that a message names in backticks; the gateway shows the model the same ones.

import { el } from "/static/dom.js";
import { showHidden } from "/static/visible.js";
import { showImage } from "/static/workspace-links.js";

const NAMED = /`([^`\n]+\.(?:png|jpe?g|gif|webp))`/gi;
const MAX_PICTURES = 5;

/** A row of the pictures; null where the message names none. A file that is no picture leaves the row; of one that cannot be decoded a link stays. */
export function messagePictures(message) {
  const paths = [...new Set([...message.matchAll(NAMED)].map((found) => found[1]))].slice(0, MAX_PICTURES);
  if (!paths.length) return null;
  return el("div", { class: "message-pictures", "data-testid": "message-pictures" }, paths.map((path) => {
    const link = el("a", { href: "#", "data-image": path }, showHidden(path));
    showImage(link).then(() => { if (!link.querySelector("img")) link.remove(); });
    return link;
  }));
}
