import { readFileSync } from 'node:fs';
import { defineConfig } from 'vite';

const PACKAGE = /^node_modules\/(.+)\/index$/; // a package's one module, as it is named here

// What is built is a module for every module of src, by its name and readable:
// the pages load them, and tests import each by itself.
export default defineConfig({
  base: './',
  build: {
    outDir: process.env.DIST ?? '../dist',
    emptyOutDir: true,
    target: 'esnext', // nothing is rewritten for older browsers
    minify: false,
    lib: { entry: ['src/console.ts', 'src/event.ts', 'src/home.ts', 'src/queue.ts', 'src/tickets.ts'], formats: ['es'] },
    rollupOptions: {
      treeshake: false, // what only tests use stays
      output: {
        preserveModules: true,
        preserveModulesRoot: 'src',
        entryFileNames: ({ name }) => `${name.replace(PACKAGE, '$1')}.js`,
        banner: ({ name }) => (PACKAGE.test(name) ? `/*\n${readFileSync(name.replace(/index$/, 'LICENSE'), 'utf8')}*/` : ''),
      },
    },
  },
  worker: { format: 'es', rollupOptions: { output: { entryFileNames: '[name].js' } } },
});
