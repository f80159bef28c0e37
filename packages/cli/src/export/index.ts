export { type ExportOptions, exported } from "./export.ts";
export { type Format, formatFor, formats } from "./format.ts";
export { writeOutput } from "./output-file.ts";
export { toDialect } from "./to-dialect.ts";
