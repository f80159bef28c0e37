import { createHash, randomUUID } from "node:crypto";
import { HoldfastError } from "../errors.ts";

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** Of the newest id: its time, and the number that sorts it among those of the same millisecond. */
let lastMs = -1;
let count = 0;
/** A new millisecond starts below half of this, at random. */
const COUNT_END = 0x1000;

/** A UUIDv7: sorts by creation time. Those that one process makes sort in the order in which it made them. */
export function newId(nowMs: number = Date.now()): string {
  // Its own random bits come from a pool, and its variant is the same.
  const random = randomUUID();
  count =
    nowMs === lastMs && count + 1 < COUNT_END ? count + 1 : Number.parseInt(random.slice(0, 4), 16) % (COUNT_END / 2);
  lastMs = nowMs;
  const time = nowMs.toString(16).padStart(12, "0");
  return `${time.slice(0, 8)}-${time.slice(8)}-7${count.toString(16).padStart(3, "0")}${random.slice(18)}`;
}

/** A UUIDv8 that is the same for the same text, wherever it is made. */
export function idFrom(name: string): string {
  const bytes = createHash("sha256").update(name).digest();
  bytes[6] = (bytes[6]! & 0x0f) | 0x80;
  bytes[8] = (bytes[8]! & 0x3f) | 0x80;
  return bytes.toString("hex", 0, 16).replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
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
