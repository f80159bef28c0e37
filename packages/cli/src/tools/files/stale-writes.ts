import { Buffer } from "node:buffer";
import { stat } from "node:fs/promises";
import type { OpenCall } from "holdfast";
import { isOwn, type OwnStore } from "../paths/own-store.ts";
import { realPath } from "../paths/real-path.ts";
import { readWhole } from "./regular-file.ts";

/**
 * Whether repeating a write with an unknown outcome would undo someone's work: the file has changed since the write
 * started, and its content is not what the write would produce.
 */
export async function isStaleWrite(
  cwd: string,
  { name, input, state, startedAt }: OpenCall,
  own: OwnStore | null = null,
): Promise<boolean> {
  if (name !== "write" || state !== "outcome-unknown" || startedAt === undefined) return false;
  const { path, content } = (input ?? {}) as { readonly path?: unknown; readonly content?: unknown };
  if (typeof path !== "string" || typeof content !== "string") return false;
  try {
    const real = realPath(cwd, path);
    if (own && isOwn(own, real)) return false;
    const { mtimeMs, size } = await stat(real);
    if (mtimeMs <= Date.parse(startedAt)) return false;
    const expected = Buffer.from(content);
    return size !== expected.length || (await readWhole(real, path, size))?.equals(expected) !== true;
  } catch (error) {
    // The file does not exist or cannot be read: there is nothing to undo.
    if (error instanceof Error) return false;
    throw error;
  }
}
