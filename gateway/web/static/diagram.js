// Mermaid diagrams. Each is drawn in a sandboxed frame of its own when it comes near the window; what cannot be drawn
// stays code.

import { el } from "/static/dom.js";
import { t } from "/static/i18n.js";

const MAX_CHARS = 50_000;
const MAX_HEIGHT_PX = 4000;
const TIMEOUT_MS = 20_000;
const FRAME = new URL("./diagram/frame.html", import.meta.url).href;

const near = new IntersectionObserver((entries) => {
  for (const { isIntersecting, target } of entries) {
    if (!isIntersecting) continue;
    near.unobserve(target);
    show(target);
  }
}, { rootMargin: "400px" });

/** The colours of the page as the frame can use them: a token may be a pair for light and dark. */
function looks(frame) {
  const probe = el("span", { hidden: true });
  frame.append(probe);
  const color = (name) => {
    probe.style.color = `var(--${name})`;
    return getComputedStyle(probe).color;
  };
  const theme = {
    background: color("paper-sunk"), primaryColor: color("paper-raised"), primaryTextColor: color("ink"),
    primaryBorderColor: color("line-strong"), secondaryColor: color("accent-wash"), tertiaryColor: color("paper-side"),
    edgeLabelBackground: color("paper-sunk"), lineColor: color("ink-soft"), textColor: color("ink"),
    fontFamily: getComputedStyle(document.body).fontFamily, fontSize: "15px",
  };
  probe.remove();
  const light = (text) => text.match(/[\d.]+/g).slice(0, 3).reduce((sum, part) => sum + Number(part), 0);
  return { theme, scheme: light(theme.background) < light(theme.textColor) ? "dark" : "light" };
}

function show(frame) {
  const pre = frame.querySelector("pre");
  const view = el("iframe", { class: "diagram", sandbox: "allow-scripts", src: FRAME, title: t("diagram") });
  const toggle = el("button", { class: "link-button", type: "button", onclick: () => turn(view.hidden) }, t("diagram_source"));
  const turn = (isDrawn) => {
    view.hidden = !isDrawn;
    pre.hidden = isDrawn;
    toggle.textContent = t(isDrawn ? "diagram_source" : "diagram_show");
  };
  const leave = () => {
    removeEventListener("message", hear);
    clearTimeout(timer);
  };
  const giveUp = () => {
    leave();
    view.remove();
  };
  const hear = ({ source, data }) => {
    if (!source || source !== view.contentWindow) return; // both are null once it has left the page
    if (data.ready) {
      view.contentWindow.postMessage({ text: frame.querySelector("code").textContent, ...looks(frame) }, "*");
    } else if (Number.isFinite(data.height)) {
      leave();
      view.style.height = `${Math.min(Math.max(data.height, 20), MAX_HEIGHT_PX)}px`;
      view.classList.add("is-drawn");
      frame.querySelector(".code-bar > span").after(toggle);
      turn(true);
    } else {
      giveUp();
    }
  };
  const timer = setTimeout(giveUp, TIMEOUT_MS);
  addEventListener("message", hear);
  pre.after(view);
}

/** Draw the diagram of a code frame that holds one, once. */
export function drawDiagram(frame) {
  const code = frame.querySelector("code");
  if (code?.dataset.language !== "mermaid" || frame.dataset.diagram || code.textContent.length > MAX_CHARS) return;
  frame.dataset.diagram = "true";
  near.observe(frame);
}
