// Measures the heaviest first views; fails above the limits, or if a component has no styles.
import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';

const FIRST_VIEW_BYTES_MAX = 300 * 1024;
const SIGN_IN_BYTES_MAX = 160 * 1024;
const built = process.argv[2] ?? join(dirname(fileURLToPath(import.meta.url)), '../../../ingress/assets/dashboard');

const manifest = JSON.parse(readFileSync(join(built, '.vite/manifest.json'), 'utf8'));
const entry = Object.keys(manifest).find((key) => manifest[key].isEntry);

/** Files of chunks and of their static imports. */
function closure(key, seen = new Set()) {
  const chunk = manifest[key];
  if (chunk === undefined || seen.has(chunk.file)) return seen;
  seen.add(chunk.file);
  for (const css of chunk.css ?? []) seen.add(css);
  for (const asset of chunk.assets ?? []) seen.add(asset);
  for (const imported of chunk.imports ?? []) closure(imported, seen);
  return seen;
}

const PROGRAM = 'src/main.tsx';

/** Files of the first view of a page. */
const firstView = (...keys) => [PROGRAM, ...keys].reduce((seen, key) => closure(key, seen), closure(entry));

const bytes = (file) => gzipSync(readFileSync(join(built, file)), { level: 9 }).length;
const sizes = new Map();
const size = (file) => sizes.get(file) ?? sizes.set(file, bytes(file)).get(file);
const sum = (files) => ['index.html', ...files].reduce((total, file) => total + size(file), 0);
const SHELL = 'src/components/Shell.tsx';
const pages = manifest[PROGRAM].dynamicImports.map((key) => firstView(SHELL, key));
const largest = pages.sort((left, right) => sum(right) - sum(left))[0];
for (const file of largest) console.log(`${String(size(file)).padStart(8)}  ${file}`);
const views = [
  ['the heaviest first view', sum(largest), FIRST_VIEW_BYTES_MAX],
  ['the sign-in page', sum(firstView('src/pages/SignIn.tsx')), SIGN_IN_BYTES_MAX],
];
for (const [name, total, max] of views)
  console.log(`${String(total).padStart(8)}  bytes compressed, ${name} (at most ${max})`);

// Classes of the component library, which only its style sheets define.
const classes = (extension) => {
  const files = readdirSync(join(built, 'assets')).filter((file) => file.endsWith(extension));
  const text = files.map((file) => readFileSync(join(built, 'assets', file), 'utf8')).join('');
  return new Set(text.match(/\bm_[0-9a-f]{6,8}\b/g));
};
const styled = classes('.css');
const sheets = join(dirname(fileURLToPath(import.meta.url)), '../node_modules/@mantine/core/styles');
const isUsed = classes('.js');
const missing = readdirSync(sheets)
  .filter((file) => file.endsWith('.layer.css'))
  .filter((file) => {
    const defined = readFileSync(join(sheets, file), 'utf8').match(/\bm_[0-9a-f]{6,8}\b/g) ?? [];
    return defined.some((name) => isUsed.has(name) && !styled.has(name));
  });
if (missing.length > 0) console.error(`src/component-styles.ts lacks ${missing.join(', ')}`);
// The manifest is only needed for this check and is not served.
rmSync(join(built, '.vite'), { recursive: true });
if (missing.length > 0 || views.some(([, total, max]) => total > max)) process.exit(1);
