// Renders Markdown of a model without raw HTML, block by block, and sanitizes each with DOMPurify as the last step.

import MarkdownIt from "/static/vendor/markdown-it-15.0.3.js";
import DOMPurify from "/static/vendor/dompurify-3.4.18.js";
import cjkFriendly from "/static/vendor/markdown-it-cjk-friendly-3.0.0.js";
import { math } from "/static/markdown-math.js";
import { notes } from "/static/markdown-notes.js";
import { closeInline, withoutHalfBlock } from "/static/markdown-open.js";
import { workspacePath } from "/static/workspace-path.js";

const WEB_LINK = /^https?:\/\//i;
// Where a link may lead outside the workspace.
const OUTER_LINK = /^(?:https?:\/\/|mailto:|tel:)/i;
// A paragraph that is longer is shown as it is: its marks take too long to find.
const MAX_INLINE_CHARS = 20_000;
const TASK = /^\[([ xX])\]\s+/;

const markdown = new MarkdownIt({ html: false, linkify: true, breaks: true });
// `notes.md` is a file here, not a host in Moldova.
markdown.linkify.set({ fuzzyLink: false, fuzzyEmail: false });
const leadsSomewhere = (url) => OUTER_LINK.test(url) || workspacePath(url) !== null;
markdown.validateLink = (url) => url === "" || leadsSomewhere(url);
// A link whose target is not allowed is parsed as one without a target, of which only the words are shown.
const { parseLinkDestination } = markdown.helpers;
markdown.helpers.parseLinkDestination = (text, start, end) => {
  const found = parseLinkDestination(text, start, end);
  return leadsSomewhere(markdown.normalizeLink(found.str)) ? found : { ...found, str: "" };
};
// Blocks are parsed first and rendered one by one.
markdown.core.ruler.disable(["normalize", "block", "strip_references"]);
// By CommonMark alone `**注意：**请` is not bold: it expects a space or punctuation behind the closing marks.
markdown.use(cjkFriendly);
markdown.use(notes);
markdown.use(math);

const escape = markdown.utils.escapeHtml;

// Fetching a picture tells its server who reads; it is shown as a link that the reader may follow.
markdown.renderer.rules.image = (tokens, index, options, env, renderer) => {
  const token = tokens[index];
  const source = token.attrGet("src") ?? "";
  const words = escape(renderer.renderInlineAsText(token.children ?? [], options, env) || source);
  if (WEB_LINK.test(source)) return `<a href="${escape(source)}">${words}</a>`;
  const path = workspacePath(source);
  return path === null ? words : `<a data-image="${escape(path)}">${words}</a>`;
};

markdown.renderer.rules.link_open = (tokens, index, options, env, renderer) => {
  const target = tokens[index].attrGet("href");
  if (!target) {
    let end = index + 1;
    while (tokens[end].type !== "link_close" || tokens[end].level !== tokens[index].level) end += 1;
    tokens[end].hidden = true;
    return "";
  }
  const path = workspacePath(target);
  return path === null ? renderer.renderToken(tokens, index, options) : `<a data-path="${escape(path)}">`;
};

// The policy for styles forbids the style attribute that tables get by default.
const alignCell = (tokens, index, options, env, renderer) => {
  const style = tokens[index].attrGet("style");
  if (style) tokens[index].attrs = [["align", style.replace("text-align:", "")]];
  return renderer.renderToken(tokens, index, options);
};
markdown.renderer.rules.th_open = alignCell;
markdown.renderer.rules.td_open = alignCell;

markdown.renderer.rules.fence = (tokens, index) => {
  const language = tokens[index].info.trim().split(/\s+/, 1)[0];
  return `<pre><code data-language="${escape(language)}">${escape(tokens[index].content)}</code></pre>\n`;
};

const purifier = DOMPurify(window);
purifier.addHook("afterSanitizeAttributes", (node) => {
  if (node.nodeName !== "A") return;
  const target = node.getAttribute("href");
  if (!target) return;
  node.setAttribute("target", "_blank");
  node.setAttribute("rel", "noopener noreferrer");
  // The text of a link may name another place than the one it leads to.
  node.setAttribute("title", target);
});

const DATA = ["data-image", "data-language", "data-math", "data-note", "data-note-reference", "data-path", "data-task"];
const ALLOWED = {
  ALLOWED_TAGS: ["a", "blockquote", "br", "code", "del", "div", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "li", "ol", "p", "pre", "s", "strong", "sup", "table", "tbody", "td", "th", "thead", "tr", "ul"],
  ALLOWED_ATTR: ["align", "href", "rel", "start", "target", "title", ...DATA],
  ALLOWED_URI_REGEXP: OUTER_LINK,
  // No addresses: the pattern above is not for them.
  ADD_URI_SAFE_ATTR: ["align", "rel", "start", "target", "title", ...DATA],
  ALLOW_ARIA_ATTR: false,
  ALLOW_DATA_ATTR: false,
  RETURN_DOM_FRAGMENT: true,
};

/** The text as the parser counts it: the places of blocks are places in this. */
export const normalized = (text) => text.replace(/\r\n?/g, "\n").replaceAll("\0", "\uFFFD");

function* groups(tokens) {
  let start = 0;
  let depth = 0;
  for (const [index, token] of tokens.entries()) {
    depth += token.nesting;
    if (depth > 0) continue;
    if (token.type !== "reference_definition") yield tokens.slice(start, index + 1);
    start = index + 1;
  }
}

function startsOfLines(text) {
  const starts = [0];
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) starts.push(at + 1);
  return starts;
}

/**
 * The blocks of a normalized text in order: `{tokens, start, startOf(token)}` with the places of first characters. `env` is one
 * object for the whole of a text: it takes the definitions of links and notes. With `isOpen`, more text will come.
 */
export function parseBlocks(text, env, { isOpen = false } = {}) {
  const tokens = [];
  markdown.block.parse(isOpen ? withoutHalfBlock(text) : text, markdown, env, tokens);
  const starts = startsOfLines(text);
  return [...groups(tokens)].map((group) => ({ tokens: group, start: starts[group[0].map[0]], startOf: (token) => starts[token.map[0]] }));
}

/** A list without its last item, which may go on, and the `end` before that item; null where there is nothing before it. */
export function earlierItems({ tokens, startOf, isFurther }) {
  const last = tokens.findLastIndex(({ type, level }) => type === "list_item_open" && level === 1);
  if (last < 2 || !/list_open$/.test(tokens[0].type)) return null;
  return { tokens: [...tokens.slice(0, last), tokens.at(-1)], end: startOf(tokens[last]), isFurther };
}

function prepare(tokens) {
  tokens.forEach((token, index) => {
    if (token.type === "inline" && token.content.length > MAX_INLINE_CHARS) token.type = "text";
    const task = token.type === "inline" && tokens[index - 2]?.type === "list_item_open" && TASK.exec(token.content);
    if (!task) return;
    tokens[index - 2].attrSet("data-task", task[1] === " " ? "open" : "done");
    token.content = token.content.slice(task[0].length);
  });
}

/** A fragment of a block's tokens that is safe to put into the page. What the library cannot render comes back as plain text. */
export function renderBlock(tokens, env, { isOpen = false } = {}) {
  try {
    prepare(tokens);
    const last = isOpen && tokens.findLast((token) => token.type === "inline");
    if (last) last.content = closeInline(markdown, last.content, env);
    const state = new markdown.core.State("", markdown, env);
    state.tokens = tokens;
    markdown.core.process(state);
    return purifier.sanitize(markdown.renderer.render(tokens, markdown.options, env), ALLOWED);
  } catch {
    const fragment = document.createDocumentFragment();
    fragment.append(...tokens.map((token) => token.content));
    return fragment;
  }
}

/** A formula's MathML as it may stand in the page. */
export const sanitizeMath = (element) => purifier.sanitize(element, { IN_PLACE: true, USE_PROFILES: { mathMl: true }, ADD_ATTR: ["class", "style"] });

const MAX_PLAIN_CHARS = 2000;

/** The beginning of a text as it is read aloud, without marks. */
export function plainText(text) {
  const env = {};
  return parseBlocks(normalized(text.slice(0, MAX_PLAIN_CHARS)), env)
    .map(({ tokens }) => renderBlock(tokens, env).textContent).join("").trim();
}
