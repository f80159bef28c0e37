import { defineConfig } from "vite";

export default defineConfig({
  root: import.meta.dirname,
  base: "./",
  logLevel: "error",
  // `@ai-sdk/react` may come with a copy of its own.
  resolve: { dedupe: ["ai", "react"] },
  build: { outDir: "dist", emptyOutDir: true, reportCompressedSize: false },
});
