// The server's metrics, parsed from Prometheus' text, and small charts of them.

import { el } from "/static/dom.js";
import { formatCount } from "/static/format.js";
import { showHidden } from "/static/visible.js";

const LINE = /^([a-z_]+)(?:\{(.*)\})? (\S+)$/;
const LABEL = /(\w+)="((?:[^"\\]|\\.)*)"/g;
const SVG = "http://www.w3.org/2000/svg";

/** Samples by name: `[{labels, value}]`. */
export function parseMetrics(text) {
  const samples = new Map();
  for (const line of text.split("\n")) {
    const found = LINE.exec(line);
    if (!found) continue;
    const [, name, labels = "", value] = found;
    if (!samples.has(name)) samples.set(name, []);
    samples.get(name).push({ labels: Object.fromEntries([...labels.matchAll(LABEL)].map(([, key, text_]) => [key, text_])), value: Number(value) });
  }
  return samples;
}

/** The sums of a counter by one of its labels, the largest first. */
export function sumsBy(samples, name, label) {
  const sums = new Map();
  for (const sample of samples.get(name) ?? []) sums.set(sample.labels[label] ?? "", (sums.get(sample.labels[label] ?? "") ?? 0) + sample.value);
  return [...sums].filter(([, count]) => count > 0).sort((one, other) => other[1] - one[1]);
}

/** How many observations of a histogram fell into each bucket: `[[upper bound, count]]`. */
export function bucketsOf(samples, name) {
  const bounds = (samples.get(`${name}_bucket`) ?? []).map((sample) => [sample.labels.le, sample.value]);
  return bounds.map(([bound, count], index) => [bound === "+Inf" ? "∞" : `≤ ${Number(bound)} s`, count - (bounds[index - 1]?.[1] ?? 0)]);
}

/** Horizontal bars with their numbers; `words(name)` names a bar. */
export function bars(rows, words = (name) => name) {
  const most = Math.max(1, ...rows.map(([, count]) => count));
  return el("ul", { class: "bars" }, rows.map(([name, count]) => {
    const bar = el("i", {});
    bar.style.width = `${(100 * count) / most}%`;
    return el("li", {}, el("span", {}, showHidden(words(name))), el("span", { class: "bar", "aria-hidden": "true" }, bar), el("span", { class: "bar-count" }, formatCount(count)));
  }));
}

/** The latest values as a line; the number beside it says the same in text. */
export function sparkline(values) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", "0 0 100 24");
  svg.setAttribute("class", "spark");
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("aria-hidden", "true");
  const most = Math.max(1, ...values);
  const line = document.createElementNS(SVG, "polyline");
  line.setAttribute("points", values.map((value, index) => `${(100 * index) / Math.max(1, values.length - 1)},${22 - (20 * value) / most}`).join(" "));
  svg.append(line);
  return svg;
}
