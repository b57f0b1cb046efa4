/** The page, built into `dist/web` by `scripts/prepare.mjs`. */
import { defineConfig } from 'vite';

export default defineConfig({
  root: import.meta.dirname,
  // Where it is served is known to the gateway alone.
  base: './',
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  build: {
    target: 'es2022',
    // As `light-dark()` and `color-mix()` are there.
    cssTarget: ['chrome123', 'firefox120', 'safari17.5'],
    assetsDir: 'assets',
    // A script or style in a `data:` address would need a weaker policy.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
});
