// Fails if the generated API types are out of date, or if a fresh build of the dashboard differs from the committed bundle.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = join(dirname(fileURLToPath(import.meta.url)), '..');
const committed = join(here, '../../ingress/assets/dashboard');
const fresh = mkdtempSync(join(tmpdir(), 'dashboard-'));

const run = (program, ...args) =>
  execFileSync(join(here, 'node_modules/.bin', program), args, { cwd: here, stdio: 'inherit' });
const files = (folder) =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
    .sort();

try {
  run(
    'openapi-typescript',
    'admin-openapi.json',
    '--empty-objects-unknown',
    '--output',
    'src/api/admin-api.ts',
    '--check',
  );
  run('tsc', '--noEmit');
  run('vite', 'build', '--logLevel', 'error', '--outDir', fresh);
  execFileSync(process.execPath, [join(here, 'scripts/check-size.mjs'), fresh], { stdio: 'inherit' });
  const [was, is] = [files(committed), files(fresh)];
  const differing = [...new Set([...was, ...is])].filter(
    (name) =>
      !was.includes(name) ||
      !is.includes(name) ||
      !readFileSync(join(committed, name)).equals(readFileSync(join(fresh, name))),
  );
  if (differing.length > 0) {
    console.error(
      `ingress/assets/dashboard is not what web/dashboard builds: run \`npm run build\` there.\n  ${differing.join('\n  ')}`,
    );
    process.exitCode = 1;
  } else {
    console.log(`${is.length} files, each as it was committed`);
  }
} finally {
  rmSync(fresh, { recursive: true });
}
