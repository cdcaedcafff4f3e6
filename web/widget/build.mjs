// Builds the widget into the assets of the service; fails if it exceeds the size limits.
//
// node build.mjs           writes the files
// node build.mjs --check   compares them with the committed ones

import { build, transform } from "esbuild";
import { createHash } from "node:crypto";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

const ASSETS = new URL("../../ingress/assets/widget/", import.meta.url);
const CORE_BYTES_MAX = 15 * 1024;
const ALL_BYTES_MAX = 48 * 1024;

const styles = {
  name: "styles",
  setup({ onLoad }) {
    onLoad({ filter: /\.css$/ }, async ({ path }) => {
      const { code } = await transform(await readFile(path, "utf8"), { loader: "css", minify: true });
      return { contents: code.trim(), loader: "text" };
    });
  },
};

/** Builds one script; `define` sets names that the source only declares. */
async function bundle(entry, format, define = {}) {
  const values = Object.entries(define).map(([name, value]) => [name, JSON.stringify(value)]);
  const { outputFiles } = await build({
    entryPoints: [fileURLToPath(new URL(`src/${entry}`, import.meta.url))],
    bundle: true,
    minify: true,
    write: false,
    format,
    target: ["es2022"],
    charset: "utf8",
    legalComments: "none",
    plugins: [styles],
    define: Object.fromEntries(values),
    logLevel: "warning",
  });
  return outputFiles[0].text;
}

/** Names a file by its content like the service, so that a file and its address always match. */
function hashed(name, text) {
  return `${name}.${createHash("sha256").update(text).digest("hex").slice(0, 16)}.js`;
}

const files = {
  "panel.js": await bundle("panel.ts", "esm"),
  "markdown.js": await bundle("markdown/render.ts", "esm"),
  "languages.js": await bundle("languages.ts", "esm"),
  "files.js": await bundle("files/files.ts", "esm"),
};
const parts = {
  PANEL_FILE: hashed("panel", files["panel.js"]),
  MARKDOWN_FILE: hashed("markdown", files["markdown.js"]),
  LANGUAGES_FILE: hashed("languages", files["languages.js"]),
  FILES_FILE: hashed("files", files["files.js"]),
};
const { version } = JSON.parse(await readFile(new URL("package.json", import.meta.url), "utf8"));
files["widget.js"] = await bundle("main.ts", "iife", { ...parts, VERSION: version });

let failed = false;
const size = (text) => gzipSync(text, { level: 9 }).length;
const report = (name, bytes, max) => {
  failed ||= bytes > max;
  console.log(`${name.padEnd(14)} ${String(bytes).padStart(6)} bytes gzipped${max === Infinity ? "" : `, at most ${max}`}${bytes > max ? ": TOO LARGE" : ""}`);
};
for (const [name, text] of Object.entries(files)) report(name, size(text), name === "widget.js" ? CORE_BYTES_MAX : Infinity);
report("everything", Object.values(files).reduce((sum, text) => sum + size(text), 0), ALL_BYTES_MAX);

await mkdir(ASSETS, { recursive: true });
for (const [name, text] of Object.entries(files)) {
  const file = new URL(name, ASSETS);
  if (!process.argv.includes("--check")) await writeFile(file, text);
  else if ((await readFile(file, "utf8").catch(() => "")) !== text) {
    failed = true;
    console.log(`${name} is not what web/widget builds: run \`npm run build\` in web/widget and commit`);
  }
}
process.exit(failed ? 1 : 0);
