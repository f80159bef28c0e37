export { bytesWords } from "./bytes.ts";
export { type Paint, paintFor, type Style } from "./colour.ts";
export { outlivePipe } from "./pipe.ts";
export { isPlain, plain, plainLine } from "./plain.ts";
export { type Progress, progressOn } from "./progress.ts";
export { type Column, tableLines } from "./table.ts";
export { ago, durationMs } from "./time.ts";
export { fit, graphemes, pad, widthOf } from "./width.ts";
export { wrapWords } from "./wrap-words.ts";
