/** Reads data written by others; never throws. */
export type Shape = { readonly [member: string]: unknown };

export function shapeOf(value: unknown): Shape | null {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Shape) : null;
}

/** The objects of a list; anything else in it is skipped. */
export function shapesOf(value: unknown): readonly Shape[] {
  return Array.isArray(value) ? value.filter((item): item is Shape => shapeOf(item) !== null) : [];
}

/** Undefined if it is not JSON. */
export function parsedJson(json: string): unknown {
  try {
    return JSON.parse(json) as unknown;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}
