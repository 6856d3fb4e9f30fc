// Footnotes: `[^label]` in a text, `[^label]: words` as a block. A note stays where it was written.

const DEFINITION = /^\[\^([^\]\s]+)\]:[ \t]*/;
const REFERENCE = /\[\^([^\]\s]+)\]/y;

/** The number of a note: in the order in which the text refers to them. */
function numberOf(env, label) {
  env.numbers ??= new Map();
  if (!env.numbers.has(label)) env.numbers.set(label, env.numbers.size + 1);
  return env.numbers.get(label);
}

function definition(state, startLine, endLine, silent) {
  if (state.sCount[startLine] - state.blkIndent >= 4) return false;
  const begin = state.bMarks[startLine] + state.tShift[startLine];
  const found = DEFINITION.exec(state.src.slice(begin, state.eMarks[startLine]));
  if (!found) return false;
  if (silent) return true;
  const open = state.push("note_open", "div", 1);
  open.meta = found[1];
  open.block = true;
  (state.env.notes ??= new Set()).add(found[1]);
  // The note's text is parsed as a block whose later lines are indented by four.
  const kept = { tShift: state.tShift[startLine], sCount: state.sCount[startLine], bMarks: state.bMarks[startLine], blkIndent: state.blkIndent, parentType: state.parentType };
  state.bMarks[startLine] = begin + found[0].length;
  state.tShift[startLine] = 0;
  state.sCount[startLine] = 4;
  state.blkIndent = 4;
  state.parentType = "footnote";
  state.md.block.tokenize(state, startLine, endLine);
  state.blkIndent = kept.blkIndent;
  state.parentType = kept.parentType;
  state.tShift[startLine] = kept.tShift;
  state.sCount[startLine] = kept.sCount;
  state.bMarks[startLine] = kept.bMarks;
  open.map = [startLine, state.line];
  state.push("note_close", "div", -1).block = true;
  return true;
}

function reference(state, silent) {
  REFERENCE.lastIndex = state.pos;
  const found = REFERENCE.exec(state.src);
  if (!found || !state.env.notes?.has(found[1])) return false;
  if (!silent) state.push("note_reference", "sup", 0).meta = found[1];
  state.pos += found[0].length;
  return true;
}

export function notes(markdown) {
  markdown.block.ruler.before("reference", "note", definition, { alt: ["paragraph", "reference"] });
  markdown.inline.ruler.before("link", "note_reference", reference);
  markdown.renderer.rules.note_open = (tokens, index, options, env) => `<div data-note="${numberOf(env, tokens[index].meta)}">`;
  markdown.renderer.rules.note_reference = (tokens, index, options, env) => `<sup data-note-reference="${numberOf(env, tokens[index].meta)}"></sup>`;
}
