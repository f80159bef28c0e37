import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { zstdCompressSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { seedOf } from "../../../../../holdfast/test/seed.ts";
import { dsh } from "../../../../src/agents/dsh/index.ts";
import type { SessionPlace } from "../../../../src/contract/agent.ts";
import { fieldsOf } from "../../../../src/contract/shapes.ts";
import { diagnose } from "../../../../src/diagnosis/diagnose.ts";
import { Door } from "../../../../src/files/door.ts";
import { fix } from "../../../../src/fix/fix.ts";
import { listRecordings, placeRecording } from "../../../real/recording.ts";
import { kindsIn, recordsOf, sessionsIn } from "../agent-suite.ts";
import { LINE_DAMAGE, type LineDamage, lineChanged, lineGone, lineTwice, seededRandom } from "../line-damage.ts";

const SEED = seedOf(import.meta.url, "unit");
const PLACES = 2 * Number(process.env["HOLDFAST_EFFORT"] ?? 1);
const recordings = listRecordings("dsh");
let scratch = "";
let count = 0;
beforeAll(() => {
  scratch = mkdtempSync(join(tmpdir(), "holdfast-dsh-"));
});
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const placed = (story: string): SessionPlace[] => {
  const recording = recordings.find((each) => each.story === story)!;
  return sessionsIn(dsh, placeRecording(recording, join(scratch, String(count++))).home);
};

describe("DeepSeek Harness: recorded sessions", () => {
  test("there are some, plain and compressed", () =>
    expect(recordings.map(({ story }) => story)).toEqual(["killed", "plain", "steps"]));
  for (const { story, sessions: recorded } of recordings)
    test(`${story}: found, healthy, and what DeepSeek Harness itself shows`, async () => {
      const sessions = placed(story);
      expect(sessions.map(({ id }) => id).toSorted()).toEqual(recorded.map(({ id }) => id).toSorted());
      for (const session of sessions) {
        const { problems, records, units, callsInterrupted } = await diagnose(dsh, session);
        expect(problems).toEqual([]);
        expect(records).toMatchObject({ recovered: 0, partial: 0, unreadable: 0 });
        for (const { kind } of await recordsOf(dsh, session)) expect(kind).not.toBe("unknown");
        const wanted = recorded.find(({ id }) => id === session.id)!.units;
        for (const kind of ["user", "assistant", "reasoning", "call"] as const)
          expect(units[kind] ?? 0, kind).toBe(wanted.filter((unit) => unit.kind === kind).length);
        // It makes up the result of a call that was interrupted when it loads the session.
        const results = wanted.filter(({ kind }) => kind === "result").length;
        expect((units.result ?? 0) + callsInterrupted).toBe(results);
      }
    });
});

const DAMAGES: readonly LineDamage[] = [
  ...LINE_DAMAGE,
  lineGone("a record is gone", ["lost-record"], (line) => !line.startsWith('{"type":"session",')),
  lineTwice(() => true),
  lineChanged("a call with null input", ["bad-tool-input"], (line) => {
    const { type } = fieldsOf(JSON.parse(line));
    return type === "assistant/message" && /"arguments":"/.test(line)
      ? line.replace(/"arguments":"(?:[^"\\]|\\.)*"/, '"arguments":null')
      : null;
  }),
];

describe("DeepSeek Harness: damage", () => {
  for (const [index, damage] of DAMAGES.entries())
    for (const isCompressed of [false, true])
      test(`${damage.kind}${isCompressed ? ", compressed" : ""}`, async () => {
        const [session] = placed("plain");
        const lines = readFileSync(session!.path, "utf8").split("\n").slice(0, -1);
        let cases = 0;
        for (let place = 0; cases < PLACES && place < 50 * PLACES; place++) {
          const seed = SEED + 1_000 * index + place;
          const harm = damage.harm(lines, seededRandom(seed));
          if (harm === null) continue;
          cases++;
          const path = join(dirname(session!.path), `session.jsonl${isCompressed ? ".zstd" : ""}`);
          writeFileSync(path, isCompressed ? framed(harm.bytes) : harm.bytes);
          const found = kindsIn(await diagnose(dsh, { ...session!, path }));
          expect(
            found.some((kind) => damage.named.includes(kind)),
            `${damage.kind}, seed ${seed}: ${found.join() || "nothing"}`,
          ).toBe(true);
          const words = `${damage.kind}, seed ${seed}`;
          const fixed = await fix(dsh, { ...session!, path }, { backups: join(scratch, "backups") });
          // Of an empty file, nothing is left.
          if (harm.bytes.length === 0) expect(fixed).toBeNull();
          else expect(fixed === null ? "not repaired" : kindsIn(fixed.diagnosis), words).toEqual([]);
          const repaired = readFileSync(path);
          expect(await fix(dsh, { ...session!, path }, { backups: join(scratch, "backups") })).toBeNull();
          expect(readFileSync(path).equals(repaired)).toBe(true);
          const readable = new Set(
            (await recordsOf(dsh, { ...session!, path })).map(({ value }) => JSON.stringify(value)),
          );
          for (const [n, line] of lines.entries())
            if (!harm.lost.includes(n))
              expect(
                readable.has(JSON.stringify(JSON.parse(line))),
                `${damage.kind}, seed ${seed}, line ${n + 1}`,
              ).toBe(true);
        }
        expect(cases).toBeGreaterThan(0);
      });
});

describe("DeepSeek Harness: repaired", () => {
  const linesOf = (path: string): string[] => readFileSync(path, "utf8").split("\n").slice(0, -1);
  const repaired = async (session: SessionPlace, lines: readonly string[]) => {
    writeFileSync(session.path, lines.map((line) => `${line}\n`).join(""));
    const fixed = await fix(dsh, session, { backups: join(scratch, "backups") });
    return { fixed, lines: linesOf(session.path).map((line) => fieldsOf(JSON.parse(line))) };
  };

  test("a version that is not known is said, and left alone", async () => {
    for (const version of [5, -1]) {
      const [session] = placed("plain");
      const lines = linesOf(session!.path).toSpliced(20, 1);
      const { fixed } = await repaired(session!, [
        lines[0]!.replace('"version":0', `"version":${version}`),
        ...lines.slice(1),
      ]);
      expect(fixed).toBeNull();
      expect(kindsIn(await diagnose(dsh, session!))).toContain("unknown-version");
    }
  });

  test("a version that was never seen gets no event that was made up", async () => {
    const [session] = placed("plain");
    const lines = linesOf(session!.path).toSpliced(20, 1);
    const { fixed } = await repaired(session!, [lines[0]!.replace('"version":0', '"version":3'), ...lines.slice(1)]);
    expect(fixed).toBeNull();
    const [other] = placed("plain");
    const glued = linesOf(other!.path);
    const whole = [glued[0]!.replace('"version":0', '"version":3'), ...glued.slice(1)];
    const result = await repaired(other!, [...whole.slice(0, 8), whole[8]! + whole[9]!, ...whole.slice(10)]);
    expect(result.lines.map((line) => JSON.stringify(line))).toEqual(whole);
  });

  test("numbers that two processes gave: everything stays, in the order of the file", async () => {
    const [session] = placed("plain");
    const lines = linesOf(session!.path);
    const again = lines.slice(-3).map((line) => line.replace(/"time":\d+/, '"time":1795125299999'));
    const { fixed, lines: after } = await repaired(session!, [...lines, ...again]);
    expect(fixed?.diagnosis.problems).toEqual([]);
    expect(after.length).toBe(lines.length + 3);
  });

  test("a result that is gone has a note; its neighbours, the prompt and the answer come back as they were", async () => {
    const [session] = placed("plain");
    const lines = linesOf(session!.path);
    const at = (words: string): number => lines.findIndex((line) => line.includes(words));
    for (const [words, isBack] of [
      ['"type":"tool/result"', false],
      ['"type":"assistant/message"', true],
      ['"type":"user/message"', true],
    ] as const) {
      const { fixed, lines: after } = await repaired(session!, lines.toSpliced(at(words), 1));
      expect(fixed?.diagnosis.problems).toEqual([]);
      const made = JSON.stringify(fieldsOf(after[at(words)]));
      expect(made.includes("holdfast doctor"), words).toBe(!isBack);
      const content = (line: string): unknown => {
        const data = fieldsOf(fieldsOf(JSON.parse(line))["data"]);
        return fieldsOf(data["message"] ?? data)["content"];
      };
      if (isBack) expect(content(made)).toEqual(content(lines[at(words)]!));
      expect(fixed!.plan.lost.length, words).toBe(isBack ? 0 : 1);
    }
  });
});

/** Frames one after another, as it writes them. */
function framed(bytes: Buffer): Buffer {
  const frames: Buffer[] = [];
  for (let at = 0; at < bytes.length; at += 5_000) frames.push(zstdCompressSync(bytes.subarray(at, at + 5_000)));
  return Buffer.concat(frames);
}

describe("a compressed file of several frames", () => {
  const words = Array.from({ length: 40 }, (_, n) => `${n} ${"heron ".repeat(n * 50)}\n`);
  async function textOf(bytes: Buffer): Promise<{ readonly text: string; readonly isCut: boolean }> {
    const path = join(scratch, `frames-${count++}`);
    mkdirSync(scratch, { recursive: true });
    writeFileSync(path, bytes);
    using door = new Door();
    const file = await door.open(path);
    return { text: Buffer.from(file.read(0, file.size)).toString("utf8"), isCut: file.isCut };
  }
  const frames = words.map((word) => zstdCompressSync(Buffer.from(word)));

  test("is read to its end, with frames that are to be passed over", async () => {
    const passed = Buffer.from([0x53, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3]);
    const bytes = Buffer.concat([...frames.slice(0, 20), passed, ...frames.slice(20)]);
    expect(await textOf(bytes)).toEqual({ text: words.join(""), isCut: false });
  });

  test("without its end: the frames before it are there", async () => {
    const bytes = Buffer.concat(frames);
    for (const missing of [1, 5, frames.at(-1)!.length - 2]) {
      const { text, isCut } = await textOf(bytes.subarray(0, bytes.length - missing));
      expect([text.startsWith(words.slice(0, -1).join("")), isCut], basename(String(missing))).toEqual([true, true]);
    }
  });

  test("with garbage behind it", async () => {
    const { text, isCut } = await textOf(Buffer.concat([...frames, Buffer.from("garbage")]));
    expect([text, isCut]).toEqual([words.join(""), true]);
  });
});
