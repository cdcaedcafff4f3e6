// What is built goes into the ingress crate and is committed there, so that cargo alone builds the product.
import react from '@vitejs/plugin-react';
import { defineConfig } from 'vite';

/** A running service, to which the development server hands on whatever is not the dashboard's own source. */
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
    // For older ones light-dark() would be rewritten into variables that nothing here defines.
    cssTarget: ['chrome123', 'edge123', 'firefox120', 'safari17.5'],
    // The policy forbids inline scripts, and the polyfill would be one.
    modulePreload: { polyfill: false },
  },
});
