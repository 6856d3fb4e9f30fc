// Builds elements. Strings become text nodes, never HTML, so foreign text cannot become markup.

/** Create an element. `on<event>` attributes are listeners; null, undefined and false leave an attribute out. */
export function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

/** Make `nodes` the children of `parent`, in order, without touching those already in place. */
export function place(parent, nodes) {
  const wanted = nodes.filter(Boolean);
  const kept = new Set(wanted);
  for (const child of [...parent.childNodes]) if (!kept.has(child)) child.remove();
  wanted.forEach((node, index) => {
    if (parent.childNodes[index] !== node) parent.insertBefore(node, parent.childNodes[index] ?? null);
  });
}

/** Set text only where it differs, so that an unchanged page is not laid out again. */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

export const byId = (id) => document.getElementById(id);
