// Brings elements up to date in place: what is the same stays, with the focus and what is selected in it. A listener
// stays as well, whatever its element shows then: it is for elements that have none of their own.

/** Lengthen or replace a text; what is selected in its beginning stays selected. */
function patchText(old, text) {
  if (text.startsWith(old.data)) old.appendData(text.slice(old.length));
  else old.data = text;
}

/**
 * Make `old` look like `next`, which may be taken for it. `extend(old, next)` does so by itself where it returns true;
 * elements for which `isWhole(element)` are replaced, not changed.
 */
export function patch(old, next, { extend = () => false, isWhole = () => false } = {}) {
  if (old.isEqualNode(next)) return;
  if (old.nodeType === Node.TEXT_NODE && next.nodeType === Node.TEXT_NODE) {
    patchText(old, next.data);
    return;
  }
  if (extend(old, next)) return;
  const isAlike = old.nodeType === Node.ELEMENT_NODE && old.nodeName === next.nodeName && !isWhole(old) && old.cloneNode().isEqualNode(next.cloneNode());
  if (isAlike) patchAll([...old.childNodes], [...next.childNodes], old, null, { extend, isWhole });
  else old.replaceWith(next);
}

/** Bring the nodes `old` of `parent`, which end before `end`, up to date with `next`. */
export function patchAll(old, next, parent, end, how = {}) {
  next.forEach((node, index) => {
    if (index < old.length) patch(old[index], node, how);
    else parent.insertBefore(node, end);
  });
  old.slice(next.length).forEach((node) => node.remove());
}
