import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";

/** Every path below a folder; none if it is not there. */
export function filesBelow(folder: string): string[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder, { recursive: true, encoding: "utf8" }).map((path) => join(folder, path));
}
