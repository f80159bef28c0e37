import { defineConfig } from "vite";

/** The page is static: one script and one style sheet, with no inline code, for a strict content security policy. */
export default defineConfig({
  root: import.meta.dirname,
  base: "./",
  resolve: { conditions: ["holdfast-source", "module", "browser", "import", "default"] },
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: {
    outDir: "dist",
    emptyOutDir: true,
    target: "es2022",
    modulePreload: { polyfill: false },
    // A data URL in a style sheet would need a looser policy.
    assetsInlineLimit: 0,
    reportCompressedSize: false,
  },
});
