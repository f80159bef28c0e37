import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { afterAll, describe, expect, test } from "vitest";
import { gemini } from "../../../../src/agents/gemini/index.ts";
import { diagnose } from "../../../../src/diagnosis/diagnose.ts";
import { Door } from "../../../../src/files/door.ts";
import { fix } from "../../../../src/fix/fix.ts";
import { kindsIn, recordsOf } from "../agent-suite.ts";

const folder = mkdtempSync(join(tmpdir(), "holdfast-gemini-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Made by hand after the program's own types: no version that writes it is installed here. */
const SESSION = {
  sessionId: "3f0c1d52-0000-4000-8000-000000000001",
  projectHash: "ab".repeat(32),
  startTime: "2025-10-01T10:00:00.000Z",
  lastUpdated: "2025-10-01T10:05:00.000Z",
  messages: [
    { id: "m1", timestamp: "2025-10-01T10:00:00.000Z", type: "user", content: "What is a heron?\nΩ — 鷺" },
    {
      ...{ id: "m2", timestamp: "2025-10-01T10:01:00.000Z", type: "gemini", content: "I look." },
      thoughts: [{ subject: "Birds", description: "A bird." }],
      toolCalls: [
        { id: "c1", name: "ls", args: { path: "." }, status: "success", timestamp: "x", result: [{ text: "one" }] },
      ],
    },
    { id: "m3", timestamp: "2025-10-01T10:02:00.000Z", type: "gemini", content: 'A "wading" bird.\tYes.' },
    { id: "m4", timestamp: "2025-10-01T10:03:00.000Z", type: "user", content: [{ text: "Thanks." }] },
  ],
  summary: "Herons",
};
const TEXT = JSON.stringify(SESSION, null, 2);

async function read(content: string | Buffer) {
  const path = join(folder, "session-2025-10-01T10-00-3f0c1d52.json");
  writeFileSync(path, content);
  using door = new Door();
  const [session] = [...gemini.find(path, door)];
  const records = await recordsOf(gemini, session!);
  const ids = records.flatMap(({ id, state }) => (id === null || state === "unreadable" ? [] : [`${id} ${state}`]));
  return { kinds: kindsIn(await diagnose(gemini, session!)), ids, session: session! };
}

const at = (text: string): number => TEXT.indexOf(text);
const CASES: readonly [name: string, content: string | Buffer, kinds: readonly string[], lost: readonly string[]][] = [
  ["healthy", TEXT, [], []],
  ["torn", TEXT.slice(0, at("wading")), ["torn-record"], ["m3", "m4"]],
  ["its end is missing", TEXT.slice(0, -1).trimEnd(), ["unclosed-record"], []],
  ["a raw line break", TEXT.replace("heron?\\n", "heron?\n"), ["raw-line-break"], []],
  ["NUL in a message", TEXT.replace("wading", "wad\0ng"), ["nul-run"], ["m3"]],
  ["NUL behind it", `${TEXT}${"\0".repeat(50)}`, ["nul-run"], []],
  ["a bad byte", Buffer.from(TEXT.replace("wading", "wad\xe9ng"), "latin1"), ["invalid-utf8"], ["m1", "m3"]],
  ["a byte order mark", `\ufeff${TEXT}`, ["byte-order-mark"], []],
  ["CR LF", TEXT.replaceAll("\n", "\r\n"), ["crlf"], []],
  ["twice", `${TEXT}\n${TEXT}`, ["doubled-file"], []],
  ["no header", TEXT.slice(at('"startTime"')), ["header-missing"], []],
  [
    "a message lost its head",
    TEXT.slice(0, at('"id": "m3"')) + TEXT.slice(at('"content": "A')),
    ["torn-record"],
    ["m3"],
  ],
  ["empty", "", ["empty-file"], ["m1", "m2", "m3", "m4"]],
];

describe("Gemini CLI: a session that is one object", () => {
  for (const [name, content, kinds, lost] of CASES)
    test(name, async () => {
      const found = await read(content);
      if (kinds.length === 0) expect(found.kinds).toEqual([]);
      for (const kind of kinds) expect(found.kinds, found.kinds.join()).toContain(kind);
      for (const id of ["m1", "m2", "m3", "m4"])
        if (!lost.includes(id)) expect(found.ids.join(), id).toMatch(new RegExp(`${id} (?:intact|recovered)`));
    });

  test("units", async () => {
    const { session } = await read(TEXT);
    const { units } = await diagnose(gemini, session);
    expect(session.id).toBe(SESSION.sessionId);
    expect(units).toEqual({ user: 2, reasoning: 1, assistant: 2, call: 1, result: 1 });
  });
});

describe("an older session, repaired", () => {
  const at = (text: string, from = 0): number => TEXT.indexOf(text, from);
  const cases: readonly [name: string, content: string | Buffer, messages: number][] = [
    ["a raw line break in a string", TEXT.replace("heron?\\nΩ", "heron?\nΩ"), 4],
    ["a byte order mark", `\ufeff${TEXT}`, 4],
    ["zeros between messages", TEXT.replace('},\n    {\n      "id": "m4"', '},\0\0\0\n    {\n      "id": "m4"'), 4],
    ["garbage between messages", TEXT.replace('},\n    {\n      "id": "m3"', '},%%%\n    {\n      "id": "m3"'), 4],
    ["CR LF", TEXT.replaceAll("\n", "\r\n"), 4],
    ["the last message is torn", TEXT.slice(0, at('"m4"') + 60), 3],
    ["a message in the middle is torn", TEXT.slice(0, at('"m2"') + 80) + TEXT.slice(at('    {\n      "id": "m3"')), 3],
    ["the end is missing", TEXT.slice(0, at("Thanks.") + 30), 4],
    ["no header", TEXT.slice(at('"messages"')).replace(/^/, "{\n  "), 4],
    ["written twice", TEXT + TEXT, 4],
  ];
  test.each(cases)("%s", async (_, content, count) => {
    const path = join(folder, "session-2025-10-01T10-00-3f0c1d52.json");
    writeFileSync(path, content);
    using door = new Door();
    const [session] = [...gemini.find(path, door)];
    const fixed = await fix(gemini, session!, { backups: join(folder, "backups") });
    expect(fixed?.diagnosis.problems).toEqual([]);
    const { messages, ...facts } = JSON.parse(readFileSync(path, "utf8"));
    const whole = new Map(SESSION.messages.map((message) => [message.id, message]));
    const intact = messages.filter((message: { id: string }) => isDeepStrictEqual(message, whole.get(message.id)));
    expect(intact.length).toBeGreaterThanOrEqual(count - 1);
    expect(messages.length).toBeGreaterThanOrEqual(count);
    expect(facts).toMatchObject({
      sessionId: expect.any(String),
      projectHash: expect.stringMatching(/^[0-9a-f]{64}$/),
    });
    expect(await fix(gemini, session!, { backups: join(folder, "backups") })).toBe(null);
  });
});
