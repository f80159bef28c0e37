export { parsedJson, type Shape, shapeOf, shapesOf } from "@holdfast/server/internal/edits";

/** For people: strings as they are, anything else as JSON; never throws. */
export function print(value: unknown, indent?: number): string {
  if (typeof value === "string") return value;
  if (value === undefined) return "";
  if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) return `(${value.byteLength} bytes)`;
  try {
    return JSON.stringify(value, null, indent) ?? String(value);
  } catch {
    // JSON cannot express cycles and BigInt.
    return "(a value that cannot be printed)";
  }
}
