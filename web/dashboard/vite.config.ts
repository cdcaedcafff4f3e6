// The build output goes into the ingress crate and is committed there, so that cargo alone builds the product.
import react from '@vitejs/plugin-react';
import { defineConfig, type Plugin } from 'vite';

/** Running service that receives all requests except those for the source of the dashboard. */
const SERVICE = process.env.SWITCHBOARD_URL ?? 'http://127.0.0.1:8080';

/** Modules of the pages before the sign-in. */
const FIRST =
  /node_modules\/(react|react-dom|scheduler|@tanstack\/(react-)?(router|query|store|history)[^/]*|use-sync-external-store|clsx|get-nonce|@mantine\/(hooks|core\/esm\/(core|components\/(Alert|Anchor|Box|Button|Center|CloseButton|Code|Group|Input|InputBase|Loader|Paper|PasswordInput|ActionIcon|Stack|Text|TextInput|Title|Transition|UnstyledButton|VisuallyHidden))))\/|src\/(components\/(ErrorAlert|SignInForm)|api\/(client|session)|query-client|theme|kept-drafts|use-held-session|first-styles|favicon)/;

/** Modules that every page behind the sign-in shows at once. */
const FRAME =
  /src\/(api\/(?!admin)|components\/(CopyButton|CreateResource|EmptyState|Page|Shell|formats|undo|use-names))|components\/(Select|Table)\//;

/** Modules of the pages of an agent and of a team. */
const EDITOR =
  /src\/components\/(AuditEntries|Card|Chat(Panel|Files)|Conflict|DeleteResource|Facts|Identity|Lifecycle|lazy-part|SaveBar|Secret|Snippets)/;

/** Modules of fields that no page shows at first. */
const FIELDS = /components\/(Color\w+|NumberInput|Slider)\//;

/** Lets the page request the program and its styles together with the script that imports them. */
const preloadedProgram: Plugin = {
  name: 'preloaded-program',
  transformIndexHtml: {
    order: 'post',
    handler: (_html, { bundle = {} }) => {
      const files = Object.values(bundle).flatMap((chunk) => (chunk.type === 'chunk' ? [chunk] : []));
      const program = files.find((chunk) => chunk.facadeModuleId?.endsWith('src/main.tsx'));
      const needed = files.filter((chunk) => chunk === program || program?.imports.includes(chunk.fileName));
      const link = (attrs: Record<string, string>) => ({
        tag: 'link',
        attrs: { ...attrs, crossorigin: true, href: `/dashboard/${attrs.href}` },
        injectTo: 'head' as const,
      });
      const styles = new Set(needed.flatMap((chunk) => [...(chunk.viteMetadata?.importedCss ?? [])]));
      return [
        ...needed.map(({ fileName }) => link({ rel: 'modulepreload', href: fileName })),
        ...[...styles].map((href) => link({ rel: 'stylesheet', href })),
      ];
    },
  },
};

export default defineConfig({
  base: '/dashboard/',
  plugins: [react(), preloadedProgram],
  server: { proxy: { '/api': SERVICE, '/v1': SERVICE, '/dashboard/preview': SERVICE } },
  build: {
    outDir: '../../ingress/assets/dashboard',
    emptyOutDir: true,
    assetsInlineLimit: 0,
    reportCompressedSize: false,
    manifest: true,
    // Older targets would rewrite light-dark() into variables that are not defined.
    cssTarget: ['chrome123', 'edge123', 'firefox120', 'safari17.5'],
    // Few files: on slow connections each request costs more than the bytes that a page does not need.
    rolldownOptions: {
      output: {
        codeSplitting: {
          groups: [
            { name: 'start', test: /src\/start|vite\/preload-helper/, priority: 4 },
            { name: 'first', test: FIRST, priority: 3 },
            { name: 'frame', test: FRAME, priority: 2 },
            { name: 'table', test: /src\/components\/DataTable/, priority: 1 },
            { name: 'editor', test: EDITOR, priority: 1 },
            { name: 'fields', test: FIELDS, priority: 1 },
            { name: 'shared', test: /node_modules|src\/(components|api)\//, minShareCount: 2 },
          ],
        },
      },
    },
    // The content security policy forbids inline scripts, and the polyfill is one.
    modulePreload: { polyfill: false },
  },
});
