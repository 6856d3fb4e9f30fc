// Renders Markdown of a model without raw HTML, and sanitizes the result with DOMPurify as the last step.

import MarkdownIt from "/static/vendor/markdown-it-15.0.3.js";
import DOMPurify from "/static/vendor/dompurify-3.4.18.js";

const WEB_LINK = /^https?:\/\//i;

const markdown = new MarkdownIt({ html: false, linkify: true, breaks: true });
// `notes.md` is a file here, not a host in Moldova.
markdown.linkify.set({ fuzzyLink: false, fuzzyEmail: false });
markdown.validateLink = (url) => WEB_LINK.test(url);

const escape = markdown.utils.escapeHtml;

// Fetching a picture tells its server who reads; it is shown as a link that the reader may follow.
markdown.renderer.rules.image = (tokens, index, options, env, renderer) => {
  const token = tokens[index];
  const source = token.attrGet("src") ?? "";
  const words = escape(renderer.renderInlineAsText(token.children ?? [], options, env) || source);
  return WEB_LINK.test(source) ? `<a href="${escape(source)}">${words}</a>` : words;
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

const ALLOWED = {
  ALLOWED_TAGS: ["a", "blockquote", "br", "code", "del", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "li", "ol", "p", "pre", "s", "strong", "table", "tbody", "td", "th", "thead", "tr", "ul"],
  ALLOWED_ATTR: ["align", "data-language", "href", "rel", "start", "target", "title"],
  ALLOWED_URI_REGEXP: WEB_LINK,
  // No addresses: the pattern above is not for them.
  ADD_URI_SAFE_ATTR: ["align", "data-language", "rel", "start", "target", "title"],
  ALLOW_ARIA_ATTR: false,
  ALLOW_DATA_ATTR: false,
  RETURN_DOM_FRAGMENT: true,
};

/** A fragment that is safe to put into the page. What the library cannot parse comes back as plain text. */
export function renderMarkdown(text) {
  try {
    return purifier.sanitize(markdown.render(text), ALLOWED);
  } catch {
    const fragment = document.createDocumentFragment();
    fragment.append(text);
    return fragment;
  }
}

const MAX_PLAIN_CHARS = 2000;

/** The beginning of a text as it is read aloud, without marks. */
export const plainText = (text) => renderMarkdown(text.slice(0, MAX_PLAIN_CHARS)).textContent.trim();
