// What a link in Markdown may name of the workspace: a path relative to it.

/** The path, without `./` and a fragment; null for an address, an absolute path, or one that leads out. */
export function workspacePath(url) {
  let path;
  try {
    path = decodeURIComponent(url.split("#", 1)[0]);
  } catch {
    return null;
  }
  const parts = path.split("/").filter((part) => part !== ".");
  const isForeign = /^[/\\?]|[:\\\u0000-\u001f\u007f]/.test(path) || parts.includes("..");
  return isForeign || !parts.join("") ? null : parts.join("/");
}
