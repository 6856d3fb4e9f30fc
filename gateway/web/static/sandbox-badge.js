// The badge beside the model's name: what the kernel's sandbox protects, as a word with an explanation.

import { el } from "/static/dom.js";
import { t } from "/static/i18n.js";
import { icon } from "/static/icons.js";

const KINDS = new Set(["landlock", "bubblewrap", "off"]);

export function showSandbox(place, kind) {
  if (!KINDS.has(kind)) return;
  place.title = t(`wall_${kind}_means`);
  place.classList.toggle("is-off", kind === "off");
  place.replaceChildren(
    icon("shield"),
    el("span", { class: "wall-word" }, t(`wall_${kind}`)),
    el("span", { class: "visually-hidden" }, `. ${place.title}`),
  );
  place.hidden = false;
}
