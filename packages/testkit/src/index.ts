export * from "./conformance/index.ts";
export * from "./providers/index.ts";
