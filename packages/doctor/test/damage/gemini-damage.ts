import { recordDamage } from "./record-damage.ts";
import { lineDamage, type SessionDamage } from "./session-damage.ts";

/** What happens to whole lines of Gemini CLI. */
const isNote = (line: string): boolean => /^\{"\$set":\{"lastUpdated":"[^"]*"\}\}$/.test(line);

/** What every file shows: a message right before its note, and the snapshot of a resume. */
const NOTICED = ["record: call without input", "record: binary output", "record: zeros in its place"];

export const GEMINI_DAMAGE: readonly SessionDamage[] = [
  ...recordDamage({
    speech: /^\{"id":/,
    result: /^\{"id":.*"functionResponse"/,
    call: /^\{"id":.*"toolCalls":\[/,
    input: /("args":)\{[^{}]*\}/,
    output: /("output":)"/,
  }).filter(({ name }) => NOTICED.includes(name)),
  lineDamage(
    { name: "record: message lost", named: ["lost-record"], isLossless: false },
    (line, at, lines) => line.startsWith('{"id":') && isNote(lines[at + 1] ?? ""),
    (lines, at) => lines.splice(at, 1),
  ),
  lineDamage(
    { name: "record: message doubled", named: ["doubled-record"], isLossless: true },
    (line) => line.startsWith('{"id":'),
    (lines, at) => lines.splice(at, 0, lines[at]!),
  ),
  lineDamage(
    { name: "record: calls lost", named: ["result-without-call", "lost-record"], isLossless: false },
    (line, at, lines) => line.includes('"toolCalls":[') && line.startsWith('{"id":') && !isNote(lines[at + 1] ?? ""),
    (lines, at) => lines.splice(at, 1),
  ),
  lineDamage(
    { name: "record: snapshot of a resume lost", named: ["lost-record"], isLossless: false },
    // Behind a header, and what empties the session.
    (line, at, lines) => line.startsWith('{"$set":{"messages":[') && (lines[at - 3] ?? "").startsWith('{"sessionId"'),
    (lines, at) => lines.splice(at, 1),
  ),
];
