// Formulas in TeX: `$…$` and `\(…\)` within a line, `$$…$$` and `\[…\]` as a block.

// As in Pandoc: no space inside the marks, and no digit behind, so that prices stay prices.
const INLINE = [/\$\$([^$]+?)\$\$/y, /\$(?![\s$])((?:[^$\\\n]|\\.)+?)(?<!\s)\$(?!\d)/y, /\\\((.+?)\\\)/y, /\\\[(.+?)\\\]/y];
const ENDS = { $$: "$$", "\\[": "\\]" };

function inline(state, silent) {
  const mark = state.src.charCodeAt(state.pos);
  if (mark !== 0x24 && mark !== 0x5c) return false;
  for (const shape of INLINE) {
    shape.lastIndex = state.pos;
    const found = shape.exec(state.src);
    if (!found) continue;
    if (!silent) state.push("math", "", 0).content = found[1].trim();
    state.pos += found[0].length;
    return true;
  }
  return false;
}

function block(state, startLine, endLine, silent) {
  const lineAt = (line) => state.src.slice(state.bMarks[line] + state.tShift[line], state.eMarks[line]).trim();
  const first = lineAt(startLine);
  const end = ENDS[first.slice(0, 2)];
  if (!end || state.sCount[startLine] - state.blkIndent >= 4) return false;
  const lines = [first.slice(2)];
  let line = startLine;
  while (!lines.at(-1).endsWith(end)) {
    line += 1;
    if (line >= endLine || lineAt(line) === "" || state.sCount[line] < state.blkIndent) return false;
    lines.push(lineAt(line));
  }
  if (silent) return true;
  const token = state.push("math_block", "", 0);
  token.content = lines.join("\n").slice(0, -2).trim();
  token.map = [startLine, line + 1];
  token.block = true;
  state.line = line + 1;
  return true;
}

export function math(markdown) {
  const { escapeHtml } = markdown.utils;
  markdown.inline.ruler.before("escape", "math", inline);
  markdown.block.ruler.before("fence", "math_block", block, { alt: ["paragraph", "blockquote", "list"] });
  markdown.renderer.rules.math = (tokens, index) => `<code data-math="inline">${escapeHtml(tokens[index].content)}</code>`;
  markdown.renderer.rules.math_block = (tokens, index) => `<p><code data-math="block">${escapeHtml(tokens[index].content)}</code></p>\n`;
}
