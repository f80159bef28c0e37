import { frameworkDialects } from "@holdfast/adapters/dialects";
import { type Dialect, dialects } from "holdfast";

const known = new Map<string, Dialect<unknown>>([
  ...Object.entries(dialects as Readonly<Record<string, Dialect<unknown>>>),
  ...frameworkDialects.map((dialect) => [dialect.name, dialect] as const),
]);

/** A dialect of the library or of an adapter; null if it is an application's own. */
export function dialectNamed(name: string): Dialect<unknown> | null {
  return known.get(name) ?? null;
}
