// Writes the chat page's modules as one script and its style sheets as one, minified and with a Brotli form of each,
// and `bundle.json`: the digest of what they were made of. Run by `make page`; needs Node and, once, the registry.

import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, relative, sep } from "node:path";
import { brotliCompressSync } from "node:zlib";

const ESBUILD = "esbuild@0.28.2";
const WEB = join(import.meta.dirname, "..", "gateway", "web");
const STATIC = join(WEB, "static");
// The modules name each other as the server does.
const PATHS = JSON.stringify({ compilerOptions: { baseUrl: ".", paths: { "/static/*": ["./*"] } } });
const sha256 = (content) => createHash("sha256").update(content).digest("hex");

const bundle = (input, output, ...options) => execFileSync("npx", [
  "--yes", ESBUILD, `--outfile=${join(STATIC, output)}`, "--bundle", "--minify", "--log-level=warning", "--legal-comments=eof",
  "--target=chrome120,firefox121,safari17.4", ...options,
], { cwd: STATIC, input, stdio: [input ? "pipe" : "ignore", "inherit", "inherit"] });

/** As `gateway/http/page_files.py` counts it. */
function sourcesDigest() {
  const files = readdirSync(WEB, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  const names = files.map((entry) => relative(WEB, join(entry.parentPath, entry.name)).split(sep).join("/"));
  const lines = names.filter((name) => !name.startsWith("static/bundle")).sort()
    .map((name) => `${name}\0${sha256(readFileSync(join(WEB, name)))}\n`);
  return sha256(lines.join(""));
}

const index = readFileSync(join(WEB, "index.html"), "utf8");
const sheets = [...index.matchAll(/href="static\/(styles\/[^"]+)"/g)].map(([, name]) => `@import "./${name}";`);
bundle(null, "bundle.js", "main.js", "--format=esm", "--external:./vendor/temml-*", `--tsconfig-raw=${PATHS}`);
bundle(sheets.join("\n"), "bundle.css", "--loader=css");
const files = {};
for (const name of ["bundle.js", "bundle.css"]) {
  const content = readFileSync(join(STATIC, name));
  const compressed = brotliCompressSync(content);
  writeFileSync(join(STATIC, `${name}.br`), compressed);
  files[name] = sha256(content);
  files[`${name}.br`] = sha256(compressed);
  console.log(`${name}: ${content.length} bytes, ${compressed.length} compressed`);
}
writeFileSync(join(STATIC, "bundle.json"), `${JSON.stringify({ sources: sourcesDigest(), files }, null, 2)}\n`);
