import { defineConfig } from 'vite';

// The element for pages of other sites is one file, beside what vite.config.ts builds.
export default defineConfig({
  publicDir: false,
  build: {
    outDir: process.env.DIST ?? '../dist',
    emptyOutDir: false,
    target: 'esnext',
    modulePreload: false,
    rollupOptions: {
      input: 'src/seat-map.ts',
      preserveEntrySignatures: 'strict',
      output: { entryFileNames: '[name].js' },
    },
  },
});
