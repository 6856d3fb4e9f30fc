// Formulas as MathML. The library loads when the first one is shown; until then, and where it fails, TeX stands there.

import { sanitizeMath } from "/static/markdown.js";

const MAX_CHARS = 5000;
const LIMITS = { throwOnError: true, trust: false, maxExpand: 200, maxSize: [20, 20] };

let temml = null;
let loading = null;

function draw(node) {
  const tex = node.textContent;
  if (tex.length > MAX_CHARS) return;
  const host = document.createElement("span");
  try {
    temml.render(tex, host, { ...LIMITS, displayMode: node.dataset.math === "block" });
  } catch {
    return;
  }
  host.className = "math";
  host.dataset.math = node.dataset.math;
  host.title = tex;
  // A wide block scrolls sideways, which takes the focus by keyboard.
  if (node.dataset.math === "block") host.tabIndex = 0;
  sanitizeMath(host.firstElementChild);
  node.replaceWith(host);
}

/** Draw the formulas of a fragment: at once if the library is there, else when it is. */
export function drawMath(fragment) {
  const nodes = [...fragment.querySelectorAll("code[data-math]")];
  if (!nodes.length) return;
  if (temml) {
    nodes.forEach(draw);
    return;
  }
  loading ??= import("./vendor/temml-0.13.5.js").then((module) => { temml = module.default; });
  loading.then(() => nodes.filter((node) => node.isConnected).forEach(draw), () => { loading = null; });
}
