import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export interface Place extends Disposable {
  readonly path: string;
}

/** A temporary folder, removed at the end of the scope. */
export function temporaryPlace(parent: string = tmpdir()): Place {
  const path = mkdtempSync(join(parent, "holdfast-kill-"));
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) };
}
