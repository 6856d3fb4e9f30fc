// Markdown that is still being written: what its next characters will make of the last line is assumed, so that
// nothing shows as marks for a moment and then as what they mean.

// A line of marks alone may become a heading's rule, a list, a fence or a table.
const MARKS = /(^|\n)[ \t]*(?:[-=*_+#>|:$\\ \t]+|`{1,}[^`\n]*|~{2,}[^~\n]*|\d{1,9}[.)]?|[-*+][ \t]+\[[ xX]?\]?|\[\^?[^\]\n]*\]?:?)$/;
const HALF_TABLE = /(^|\n\n)\|[^\n]*(\n[ \t]*[|:\- \t]*)?$/;
const HALF_LINK = /!?\[([^\][]*)\]\([^()\s]*$/;
const HALF_LABEL = /(^|[\s(])!?\[([^\][]*)\]?$/;
const LAST_MARKS = /[*_~`]+$/;
const STRIKE = "~".charCodeAt(0);

/** The text without an end that cannot be shown yet. */
export const withoutHalfBlock = (text) => text.replace(HALF_TABLE, "$1").replace(MARKS, "$1");

function openCode(text) {
  let open = "";
  for (const [run] of text.matchAll(/`+/g)) {
    if (!open) open = run;
    else if (run === open) open = "";
  }
  return open;
}

/** The last line of text with what is open in it closed. */
export function closeInline(markdown, content, env) {
  let text = content.replace(HALF_LINK, "$1").replace(HALF_LABEL, "$1$2").replace(LAST_MARKS, "");
  text += openCode(text);
  const state = new markdown.inline.State(text, markdown, env, []);
  markdown.inline.tokenize(state);
  const [balance] = markdown.inline.ruler2.getRules("");
  balance(state);
  const open = state.delimiters.filter((delimiter) => delimiter.open && delimiter.end === -1);
  const closers = open.reverse().map(({ marker }) => (marker === STRIKE ? "~~" : String.fromCharCode(marker)));
  return text.trimEnd() + closers.join("");
}
