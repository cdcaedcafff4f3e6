// Measures the heaviest first view; fails above the limit.
import { readFileSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';

const FIRST_VIEW_BYTES_MAX = 300 * 1024;
const built = process.argv[2] ?? join(dirname(fileURLToPath(import.meta.url)), '../../../ingress/assets/dashboard');

/** The page, its scripts, their static imports, and the largest page. */
function firstView() {
  const manifest = JSON.parse(readFileSync(join(built, '.vite/manifest.json'), 'utf8'));
  const closure = (key, seen = new Set()) => {
    const chunk = manifest[key];
    if (chunk === undefined || seen.has(chunk.file)) return seen;
    seen.add(chunk.file);
    for (const css of chunk.css ?? []) seen.add(css);
    for (const asset of chunk.assets ?? []) seen.add(asset);
    for (const imported of chunk.imports ?? []) closure(imported, seen);
    return seen;
  };
  const entry = Object.keys(manifest).find((key) => manifest[key].isEntry);
  const pages = (manifest[entry].dynamicImports ?? []).map((key) => closure(key, closure(entry)));
  return pages;
}

const bytes = (file) => gzipSync(readFileSync(join(built, file)), { level: 9 }).length;
const sizes = new Map();
const size = (file) => sizes.get(file) ?? sizes.set(file, bytes(file)).get(file);
const sum = (files) => ['index.html', ...files].reduce((total, file) => total + size(file), 0);
const largest = firstView().sort((left, right) => sum(right) - sum(left))[0];
for (const file of largest) console.log(`${String(size(file)).padStart(8)}  ${file}`);
const total = sum(largest);
console.log(
  `${String(total).padStart(8)}  bytes compressed, the heaviest first view (at most ${FIRST_VIEW_BYTES_MAX})`,
);
// The manifest is only needed for this check and is not served.
rmSync(join(built, '.vite'), { recursive: true });
if (total > FIRST_VIEW_BYTES_MAX) process.exit(1);
