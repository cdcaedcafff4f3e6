// What is built goes into the ingress crate and is committed there, so that cargo alone builds the product.
import react from '@vitejs/plugin-react';
import { defineConfig } from 'vite';
import { devDoor } from './dev/door';

export default defineConfig(({ command }) => ({
  base: '/dashboard/',
  plugins: [react(), ...(command === 'serve' ? [devDoor()] : [])],
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
}));
