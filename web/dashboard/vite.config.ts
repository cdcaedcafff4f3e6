// The build output goes into the ingress crate and is committed there, so that cargo alone builds the product.
import react from '@vitejs/plugin-react';
import { defineConfig } from 'vite';

/** Running service that receives all requests except those for the source of the dashboard. */
const SERVICE = process.env.SWITCHBOARD_URL ?? 'http://127.0.0.1:8080';

/** Modules of the pages before the sign-in. */
const FIRST =
  /node_modules\/(react|react-dom|scheduler|@tanstack\/(react-)?(router|query|store|history)[^/]*|use-sync-external-store|clsx|get-nonce|@mantine\/(hooks|core\/esm\/(core|components\/(Alert|Anchor|Box|Button|Center|CloseButton|Code|Group|Input|InputBase|Loader|Paper|PasswordInput|ActionIcon|Stack|Text|TextInput|Title|Transition|UnstyledButton|VisuallyHidden))))\/|src\/(components\/(ErrorAlert|SignInForm)|api\/(client|session)|query-client|theme|kept-drafts|use-held-session|first-styles)/;

export default defineConfig({
  base: '/dashboard/',
  plugins: [react()],
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
            { name: 'first', test: FIRST, priority: 3 },
            { name: 'shell', test: /node_modules|src\/(components|api)\//, minShareCount: 2, priority: 1 },
          ],
        },
      },
    },
    // The content security policy forbids inline scripts, and the polyfill is one.
    modulePreload: { polyfill: false },
  },
});
