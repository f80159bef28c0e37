export { toDialect } from "./dialects/to-dialect.ts";
export { type ExportOptions, exportSession as exported } from "./export.ts";
export { type Format, formatFor, formats } from "./format.ts";
export { writeOutput } from "./output-file.ts";
