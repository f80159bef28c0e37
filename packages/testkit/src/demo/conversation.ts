import { isDeepStrictEqual } from "node:util";
import type { JournalRecord, NewRecord } from "holdfast";
import type { Found } from "../kill/content.ts";
import type { Attempt } from "../kill/pipe.ts";

/** The first of them opens the session; then they come round and round. */
const script: readonly {
  readonly role: "user" | "assistant" | "tool";
  readonly text: string;
  readonly call?: string;
}[] = [
  { role: "user", text: "The build of main is red since this morning. Can you find out why?" },
  { role: "assistant", text: "I will read the log of the first red build.", call: "read_log" },
  { role: "tool", text: "test/session.test.ts ✗ resumes after a torn tail (expected 12 records, found 11)" },
  { role: "assistant", text: "One record is missing after a crash. I will look at the writer.", call: "read_file" },
  { role: "tool", text: "await writer.append(record); // resolves before the bytes have left the process" },
  { role: "assistant", text: "The append resolves too early: it must wait for the disk." },
  { role: "user", text: "Good. Please fix it, and add a test that kills the process in the middle of a write." },
  { role: "assistant", text: "I will change the writer, then run the tests.", call: "edit_file" },
  { role: "tool", text: "1 file changed, 3 insertions, 1 deletion" },
  { role: "assistant", text: "Done: 412 tests pass, the new one among them. 🪝" },
];
const OUTPUT_LINES_MAX = 300;

/** The n-th append of the conversation: a message, and with a call its start, as one unit. */
export function appendOf(n: number): NewRecord[] {
  const { role, text, call } = script[(n - 1) % script.length]!;
  const turn = 1 + Math.floor((n - 1) / 6);
  const content = role === "tool" ? `${text}\n`.repeat(1 + ((n * 7919) % OUTPUT_LINES_MAX)) : text;
  const message = { kind: "message", n, part: 0, turn, message: { role, content } };
  return call === undefined ? [message] : [message, { kind: "tool.started", n, part: 1, turn, call, name: call }];
}

export function attemptOf(n: number): Attempt {
  return { id: n, kind: n === 1 ? "create" : "append", parts: appendOf(n).length, chars: 0 };
}

/** Which append a record belongs to, and whether it is what was appended. Null for the store's own records. */
export function appendIn(record: JournalRecord): Found | null {
  const { n, part } = record;
  if (typeof n !== "number" || typeof part !== "number") return null;
  const all = appendOf(n);
  const intact = Object.entries(all[part] ?? {}).every(([name, value]) => isDeepStrictEqual(record[name], value));
  return { seq: record.seq, crc: record.crc, id: n, part, of: all.length, chars: 0, intact };
}
