export * from "./conformance/index.ts";
export * from "./dialects/index.ts";
export * from "./providers/index.ts";
