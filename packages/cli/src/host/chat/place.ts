import { existsSync } from "node:fs";

/** A folder may have been moved or removed since its session was begun: what a person is to know of it. */
export function folderShown(cwd: string): string[] {
  if (existsSync(cwd)) return [];
  return [`The folder of this session, ${cwd}, is not there: its tools cannot work until it is.`];
}
