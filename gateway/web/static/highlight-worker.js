// Highlights code beside the page, where a slow grammar blocks nothing. Answers each `{id, code, language}`
// with `{id, runs}`: pairs of scope (or null) and text, which together are the code; null if the language is unknown.

import hljs from "./vendor/highlight-11.12.0.js";
import dockerfile from "./vendor/highlight-dockerfile-11.12.0.js";

/** What the library calls an emitter: takes the tokens as they are found. */
class Runs {
  runs = [];
  #scopes = [];

  addText(text) {
    if (text) this.runs.push([this.#scopes.findLast(Boolean) ?? null, text]);
  }

  startScope(scope) {
    this.#scopes.push(scope?.split(".")[0]);
  }

  endScope() {
    this.#scopes.pop();
  }

  openNode(scope) {
    this.startScope(scope);
  }

  closeNode() {
    this.endScope();
  }

  __addSublanguage(emitter) {
    for (const [scope, text] of emitter.runs) this.runs.push([scope ?? this.#scopes.findLast(Boolean) ?? null, text]);
  }

  finalize() {}

  toHTML() {
    return "";
  }
}

hljs.registerLanguage("dockerfile", dockerfile);
hljs.configure({ __emitter: Runs });

addEventListener("message", ({ data: { id, code, language } }) => {
  const name = language.toLowerCase().split("/").at(-1);
  const known = [name, name.split(".").at(-1)].find((candidate) => hljs.getLanguage(candidate));
  const runs = known ? hljs.highlight(code, { language: known, ignoreIllegals: true })._emitter.runs : null;
  postMessage({ id, runs });
});
