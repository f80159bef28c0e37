import { randomFillSync } from "node:crypto";
import { HoldfastError } from "../errors.ts";

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

const ID_BYTES = 16;
/** Random bytes for many ids: fetching them costs ten times as much as the rest. Filled when the first id is made. */
const pool = Buffer.allocUnsafe(256 * ID_BYTES);
let used = pool.length;

/** A UUIDv7: sorts by creation time. */
export function newId(nowMs: number = Date.now()): string {
  if (used === pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  const bytes = pool.subarray(used, used + ID_BYTES);
  used += ID_BYTES;
  bytes.writeUIntBE(nowMs, 0, 6);
  bytes[6] = (bytes[6]! & 0x0f) | 0x70;
  bytes[8] = (bytes[8]! & 0x3f) | 0x80;
  const hex = bytes.toString("hex");
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}

/** Only a UUID in canonical lower case is ever used as a path or a key (C24). */
export function isId(id: unknown): id is string {
  return typeof id === "string" && UUID.test(id);
}

/** Throws ID_INVALID for anything else, of any type. */
export function assertId(id: string): void {
  if (isId(id)) return;
  const given = typeof id === "string" ? (id as string).slice(0, 80) : `(${typeof id})`;
  // JSON leaves some control characters unescaped, and a terminal would obey them.
  const shown = JSON.stringify(given).replace(
    /[^ -~]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
  const message = `${shown} is not a session id: an id is a UUID in lower case. Nothing was touched.`;
  throw new HoldfastError("ID_INVALID", message, { id: given });
}
