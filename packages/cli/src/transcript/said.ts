import { type Part, partsOf } from "holdfast";
import { dialectNamed } from "./known-dialects.ts";
import { print, type Shape, shapeOf } from "./shape.ts";

export type PartOf<T extends Part["type"]> = Extract<Part, { type: T }>;

/** A message in a neutral form. */
export interface NeutralMessage {
  readonly role: "system" | "user" | "assistant" | "tool" | "other";
  readonly parts: readonly Part[];
  /** It makes, answers or approves calls. */
  readonly isTraffic: boolean;
}

/** A recorded message never changes, so each is read once while it is in memory. */
const known = new WeakMap<object, { readonly dialect: string; readonly said: NeutralMessage }>();

/** Works for any message. One in an application's own dialect is shown as it is. */
export function saidIn(message: unknown, dialect: string): NeutralMessage {
  const shape = shapeOf(message);
  if (!shape) return { role: "other", parts: [{ type: "text", text: print(message) }], isTraffic: false };
  const kept = known.get(shape);
  if (kept?.dialect === dialect) return kept.said;
  const said = read(shape, dialect);
  known.set(shape, { dialect, said });
  return said;
}

function read(message: Shape, name: string): NeutralMessage {
  const dialect = dialectNamed(name);
  if (!dialect) return { role: "other", parts: [{ type: "text", text: print(message, 2) }], isTraffic: false };
  const parts = partsOf(message, dialect);
  const isTraffic = parts.some(({ type }) => type !== "text" && type !== "reasoning" && type !== "file");
  return { role: dialect.role(message), parts, isTraffic };
}
