import { readFileSync, writeFileSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";

/**
 * What happens to session files, one of each kind, at a fixed place of the story `work`: enough to ask a program what
 * it does with it. Tests of the doctor make the same kinds at random places.
 */
export interface Damage {
  readonly kind: string;
  /** Returns false if this file has no such place. */
  harm(path: string): boolean;
}

/** How the damage finds its places in a format with one record in each line. */
export interface Landmarks {
  /** Whether this line is one of the conversation. */
  isConversation(line: string): boolean;
  /** Whether it is the result of a call. */
  isResult(line: string): boolean;
  /** Whether it holds a call. */
  isCall(line: string): boolean;
  /** The input of the call in this line, as text, for damage to it. */
  readonly input: RegExp;
}

const SAID = "There is one heron in this folder.";
const WITH_BREAK = "Egrets eat fish.\\nThey also";

/** For formats with lines. */
export function lineDamage({ isConversation, isResult, isCall, input }: Landmarks): Damage[] {
  const place = (lines: readonly string[], text: string): number =>
    lines.findIndex((line) => line.includes(text) && isConversation(line));
  const at =
    (find: (lines: readonly string[]) => number, change: (lines: string[], n: number) => unknown) =>
    (path: string): boolean => {
      const lines = readFileSync(path, "latin1").split("\n").slice(0, -1);
      // As UTF-8 in one character for each byte: every other byte comes back as it was.
      const n = find(lines.map((line) => Buffer.from(line, "latin1").toString("utf8")));
      if (n < 0) return false;
      change(lines, n);
      writeFileSync(path, lines.map((line) => `${line}\n`).join(""), "latin1");
      return true;
    };
  const said = (lines: readonly string[]): number => place(lines, SAID);
  const broken = (lines: readonly string[]): number => place(lines, WITH_BREAK);
  const last = (lines: readonly string[]): number => lines.findLastIndex(isConversation);
  const firstResult = (lines: readonly string[]): number => lines.findIndex(isResult);
  const firstCall = (lines: readonly string[]): number => lines.findIndex(isCall);
  const first = (): number => 0;
  const raw =
    (change: (bytes: Buffer) => Buffer) =>
    (path: string): boolean => {
      writeFileSync(path, change(readFileSync(path)));
      return true;
    };
  const half = (line: string): string => line.slice(0, line.length >> 1);
  return [
    {
      kind: "torn last record",
      harm: (path) => {
        at(last, (lines, n) => lines.splice(n, lines.length, half(lines[n]!)))(path);
        writeFileSync(path, readFileSync(path).subarray(0, -1));
        return true;
      },
    },
    { kind: "NUL bytes at the end", harm: raw((bytes) => Buffer.concat([bytes, Buffer.alloc(4_096)])) },
    {
      kind: "NUL bytes instead of the last record",
      harm: at(last, (lines, n) => lines.splice(n, lines.length, "\0".repeat(lines[n]!.length))),
    },
    {
      kind: "a record turned to NUL bytes",
      harm: at(said, (lines, n) => lines.splice(n, 1, "\0".repeat(lines[n]!.length))),
    },
    { kind: "two records glued", harm: at(said, (lines, n) => lines.splice(n - 1, 2, lines[n - 1]! + lines[n]!)) },
    {
      kind: "half a record glued to the next",
      harm: at(said, (lines, n) => lines.splice(n - 1, 2, half(lines[n - 1]!) + lines[n]!)),
    },
    {
      kind: "raw line break in a string",
      harm: at(broken, (lines, n) => lines.splice(n, 1, lines[n]!.replace("fish.\\nThey", "fish.\nThey"))),
    },
    {
      kind: "raw U+2028 in a string",
      harm: at(broken, (lines, n) => lines.splice(n, 1, lines[n]!.replace("fish.\\nThey", "fish.\xe2\x80\xa8They"))),
    },
    {
      kind: "a record split over two lines",
      harm: at(said, (lines, n) => lines.splice(n, 1, lines[n]!.replace(",", ",\n"))),
    },
    {
      kind: "a record without its last brace",
      harm: at(said, (lines, n) => lines.splice(n, 1, lines[n]!.slice(0, -1))),
    },
    {
      kind: "a byte that is no UTF-8",
      harm: at(said, (lines, n) => lines.splice(n, 1, lines[n]!.replace("one heron", "one h\xe9ron"))),
    },
    { kind: "byte order mark", harm: raw((bytes) => Buffer.concat([Buffer.from("\uFEFF"), bytes])) },
    { kind: "CRLF", harm: raw((bytes) => Buffer.from(bytes.toString("latin1").replaceAll("\n", "\r\n"), "latin1")) },
    { kind: "first record missing", harm: at(first, (lines) => lines.shift()) },
    { kind: "half of the first record", harm: at(first, (lines) => lines.splice(0, 1, half(lines[0]!))) },
    { kind: "garbage instead of the first record", harm: at(first, (lines) => lines.splice(0, 1, "\x00\x01garbage")) },
    { kind: "empty file", harm: raw(() => Buffer.alloc(0)) },
    { kind: "a record doubled", harm: at(said, (lines, n) => lines.splice(n, 0, lines[n]!)) },
    { kind: "the whole file doubled", harm: raw((bytes) => Buffer.concat([bytes, bytes])) },
    { kind: "a record lost", harm: at(said, (lines, n) => lines.splice(n, 1)) },
    { kind: "call without result", harm: at(firstResult, (lines, n) => lines.splice(n, 1)) },
    { kind: "result without call", harm: at(firstCall, (lines, n) => lines.splice(n, 1)) },
    {
      kind: "result before its call",
      harm: at(firstCall, (lines, n) => {
        const result = lines.findIndex(isResult);
        if (result > n) lines.splice(n, 0, ...lines.splice(result, 1));
      }),
    },
    {
      kind: "call with null input",
      harm: at(firstCall, (lines, n) => lines.splice(n, 1, lines[n]!.replace(input, "$1null"))),
    },
  ];
}

/** For OpenCode's database. */
export function databaseDamage(): Damage[] {
  const bytes =
    (change: (bytes: Buffer) => Buffer) =>
    (path: string): boolean => {
      writeFileSync(path, change(readFileSync(path)));
      return true;
    };
  const sql =
    (statement: string) =>
    (path: string): boolean => {
      const database = new DatabaseSync(path);
      database.exec(`PRAGMA foreign_keys = OFF; ${statement}`);
      database.close();
      return true;
    };
  const where = `WHERE data LIKE '%${SAID}%'`;
  const ofPage = (path: string, name: string): number => {
    const database = new DatabaseSync(path, { readOnly: true });
    const { rootpage } = database.prepare("SELECT rootpage FROM sqlite_schema WHERE name = ?").get(name) as {
      rootpage: number;
    };
    database.close();
    return rootpage;
  };
  const zeroPage = (name: string) => (path: string) => {
    const page = ofPage(path, name);
    return bytes((content) => {
      const size = content.readUInt16BE(16);
      return content.fill(0, (page - 1) * size, page * size);
    })(path);
  };
  return [
    { kind: "empty file", harm: bytes(() => Buffer.alloc(0)) },
    { kind: "header overwritten", harm: bytes((content) => content.fill(0, 0, 100)) },
    { kind: "second half missing", harm: bytes((content) => content.subarray(0, content.length >> 1)) },
    { kind: "the page of a table zeroed", harm: zeroPage("part") },
    { kind: "the page of an index zeroed", harm: zeroPage("part_session_idx") },
    { kind: "a part empty", harm: sql(`UPDATE part SET data = '' ${where}`) },
    {
      kind: "half of a part",
      harm: sql(`UPDATE part SET data = substr(data, 1, length(data) / 2) ${where}`),
    },
    { kind: "a part lost", harm: sql(`DELETE FROM part ${where}`) },
    {
      kind: "a message lost",
      harm: sql(`DELETE FROM message WHERE id IN (SELECT message_id FROM part ${where})`),
    },
    { kind: "the session's row lost", harm: sql(`DELETE FROM session`) },
    {
      kind: "call with null input",
      harm: sql(
        `UPDATE part SET data = json_set(data, '$.state.input', json('null')) WHERE data LIKE '%"type":"tool"%'`,
      ),
    },
  ];
}
