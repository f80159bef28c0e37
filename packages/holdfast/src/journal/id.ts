import { createHash, randomFillSync } from "node:crypto";
import { HoldfastError } from "../errors.ts";

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

const ID_BYTES = 16;
/** Random bytes for many ids: fetching them costs ten times as much as the rest. Filled when the first id is made. */
const pool = Buffer.allocUnsafe(256 * ID_BYTES);
let used = pool.length;
/** The characters of the id being made. Its hyphens stay in place. */
const text = Buffer.from("00000000-0000-0000-0000-000000000000");
/** Where the digits of each byte go. */
const PLACES = [0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34] as const;
const HEX = Buffer.from("0123456789abcdef");

/** Of the newest id: its time, and the number that sorts it among those of the same millisecond. */
let lastMs = -1;
let count = 0;
/** A new millisecond starts below half of this, at random. */
const COUNT_END = 0x1000;

/** A UUIDv7: sorts by creation time. Those that one process makes sort in the order in which it made them. */
export function newId(nowMs: number = Date.now()): string {
  if (used === pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  const at = used;
  used += ID_BYTES;
  pool.writeUIntBE(nowMs, at, 6);
  count = nowMs === lastMs && count + 1 < COUNT_END ? count + 1 : pool.readUInt16BE(at + 6) % (COUNT_END / 2);
  lastMs = nowMs;
  pool.writeUInt16BE(0x7000 | count, at + 6);
  pool[at + 8] = (pool[at + 8]! & 0x3f) | 0x80;
  // For 32 digits, a loop costs less than a native call for them and six strings to cut them apart.
  for (let i = 0; i < ID_BYTES; i++) {
    const byte = pool[at + i]!;
    text[PLACES[i]!] = HEX[byte >> 4]!;
    text[PLACES[i]! + 1] = HEX[byte & 15]!;
  }
  return text.toString("latin1");
}

/** A UUIDv8 that is the same for the same text, wherever it is made. */
export function idFrom(name: string): string {
  const bytes = createHash("sha256").update(name).digest();
  bytes[6] = (bytes[6]! & 0x0f) | 0x80;
  bytes[8] = (bytes[8]! & 0x3f) | 0x80;
  return bytes.toString("hex", 0, ID_BYTES).replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
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
