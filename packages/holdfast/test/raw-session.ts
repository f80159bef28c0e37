import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { crc32 } from "node:zlib";
import { newId } from "holdfast";

/**
 * The line of a record whose members are given as JSON text: what no writer of ours would write, with a right checksum
 * all the same.
 */
export function rawLine(
  seq: number,
  body: string,
  at = `2026-11-15T10:00:${String(seq % 60).padStart(2, "0")}.000Z`,
): string {
  const covered = `{"seq":${seq},"at":${JSON.stringify(at)},${body}`;
  return `${covered},"crc":"${crc32(covered).toString(16).padStart(8, "0")}"}`;
}

/** A session in a folder store with these lines, all of them marked as durable. */
export function putSession(root: string, bodies: readonly string[], at?: string): string {
  const id = newId();
  const folder = join(root, "sessions", id);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const lines = bodies.map((body, i) => rawLine(i + 1, i === 0 ? `"synced":${bodies.length},${body}` : body, at));
  writeFileSync(join(folder, "000001.jsonl"), `${lines.join("\n")}\n`, { mode: 0o600 });
  return id;
}

/**
 * The records of a conversation of one turn, as JSON text without the envelope, with a place for what is wrong with it.
 */
export function turnBodies(
  wrong: {
    readonly session?: string;
    readonly prompt?: string;
    readonly more?: readonly string[];
    readonly end?: string;
  } = {},
): string[] {
  const { session = "", prompt = '{"role":"user","content":"hello world"}', more = [], end = "" } = wrong;
  return [
    '"kind":"segment","format":"1.0","session":"x","segment":1,"epoch":1,"by":"test"',
    `"kind":"session","dialect":"ai-sdk","app":"test"${session}`,
    '"kind":"turn.started","turn":1,"prompt":"p1"',
    `"kind":"message","id":"p1","turn":1,"step":"p1","message":${prompt}`,
    ...more,
    `"kind":"turn.ended","turn":1,"outcome":"completed"${end}`,
  ];
}

/** JSON text that nests so deep. */
export function nestedText(levels: number): string {
  return `${'{"a":['.repeat(levels / 2)}1${"]}".repeat(levels / 2)}`;
}
