// The build output goes into the ingress crate and is committed there, so that cargo alone builds the product.
import react from '@vitejs/plugin-react';
import { defineConfig } from 'vite';

/** Running service that receives all requests except those for the source of the dashboard. */
const SERVICE = process.env.SWITCHBOARD_URL ?? 'http://127.0.0.1:8080';

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
    // The content security policy forbids inline scripts, and the polyfill is one.
    modulePreload: { polyfill: false },
  },
});
