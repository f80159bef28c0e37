/** What a call changes in a file, for every surface that shows it. Pure, and harmless in a browser. */

export { editOf, type ShownEdit } from "./edits.ts";
export { type DiffRow, diffRowText, lineDiff } from "./line-diff.ts";
export { parsedJson, type Shape, shapeOf, shapesOf } from "./shape.ts";
