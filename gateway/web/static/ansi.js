// Terminal output: colours and weights become classes; every other control sequence is left out.

import { el } from "/static/dom.js";
import { showHidden } from "/static/visible.js";

// CSI sequences, OSC strings (titles, links), and the short ones.
const SEQUENCE = /\u001b(?:\[([0-?]*)[ -/]*([@-~])|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[ -/]*[0-~])/g;
const WEIGHTS = { 1: "bold", 2: "dim", 3: "italic", 4: "underline", 7: "inverse", 9: "strike" };
const ENDS = { 22: ["bold", "dim"], 23: ["italic"], 24: ["underline"], 27: ["inverse"], 29: ["strike"] };
const BRIGHT = 8;
const CUBE = 16;
const GREYS = 232;

/** The nearest of the 16 colours that every theme has. */
function nearest(red, green, blue) {
  const strongest = Math.max(red, green, blue);
  if (strongest < 60) return 0;
  const isOn = (part) => part > strongest / 2;
  return (isOn(red) ? 1 : 0) + (isOn(green) ? 2 : 0) + (isOn(blue) ? 4 : 0) + (strongest > 200 ? BRIGHT : 0);
}

function fromPalette(number) {
  if (number < CUBE) return number;
  if (number >= GREYS) return number < GREYS + 12 ? BRIGHT : 7;
  const part = (weight) => Math.floor((number - CUBE) / weight) % 6 * 51;
  return nearest(part(36), part(6), part(1));
}

/** Read one colour after 38 or 48: `5;n` or `2;r;g;b`. Takes its numbers off the list. */
function extendedColour(codes) {
  const form = codes.shift();
  if (form === 5) return fromPalette(codes.shift() ?? 0);
  if (form === 2) return nearest(...codes.splice(0, 3));
  return null;
}

function applyCodes(style, parameters) {
  const codes = parameters.split(/[;:]/).map((code) => Number(code) || 0);
  while (codes.length) {
    const code = codes.shift();
    if (code === 0) style.clear();
    else if (code in WEIGHTS) style.set(WEIGHTS[code], true);
    else if (code in ENDS) for (const weight of ENDS[code]) style.delete(weight);
    else if (code === 38 || code === 48) style.set(code === 38 ? "fg" : "bg", extendedColour(codes));
    else if (code === 39) style.delete("fg");
    else if (code === 49) style.delete("bg");
    else if ((code >= 30 && code <= 37) || (code >= 90 && code <= 97)) style.set("fg", code % 10 + (code >= 90 ? BRIGHT : 0));
    else if ((code >= 40 && code <= 47) || (code >= 100 && code <= 107)) style.set("bg", code % 10 + (code >= 100 ? BRIGHT : 0));
  }
}

function styled(text, style) {
  if (!text) return null;
  const classes = [...style].filter(([, value]) => value !== null).map(([name, value]) => `ansi-${name}${value === true ? "" : value}`);
  return classes.length ? el("span", { class: classes.join(" ") }, showHidden(text)) : showHidden(text);
}

/** A line that a program wrote over and over, such as a progress bar, as it stood in the end. */
const lastWritten = (text) => text.replace(/\r+\n/g, "\n").replace(/^.*\r(?=[^\r\n])/gm, "").replace(/\r/g, "");

/** The text as nodes. */
export function ansiNodes(output) {
  const text = lastWritten(output);
  const style = new Map();
  const nodes = [];
  let from = 0;
  for (const found of text.matchAll(SEQUENCE)) {
    nodes.push(styled(text.slice(from, found.index), style));
    if (found[2] === "m") applyCodes(style, found[1]);
    from = found.index + found[0].length;
  }
  nodes.push(styled(text.slice(from), style));
  return nodes.filter(Boolean);
}

/** The text without control sequences, as it is copied and saved. */
export const withoutAnsi = (output) => lastWritten(output).replace(SEQUENCE, "");
