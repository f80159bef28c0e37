import { mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { AGENTS, Door, diagnose, fix, sessionsHere } from "../../../../src/index.ts";
import { parse } from "../../../damage/claude-code-damage.ts";
import { forkOf } from "../../../damage/claude-code-fork.ts";
import { fileOf, linesOf, seeded } from "../../../damage/line-damage.ts";
import { listRecordings, placeRecording } from "../../../real/recording.ts";

let scratch = "";
beforeEach(() => {
  scratch = mkdtempSync(join(tmpdir(), "holdfast-doctor-copies-"));
});
afterEach(() => rmSync(scratch, { recursive: true, force: true }));

const SEED = Number(process.env["HOLDFAST_SEED"] ?? Math.floor(Math.random() * 2 ** 31));
const again = `HOLDFAST_SEED=${SEED} npx vitest run packages/doctor/test/unit/agents/claude-code/copies.test.ts`;
const FORK = "11111111-2222-4333-8444-555555555555";

function place(version = "2.1.328") {
  const recording = listRecordings("claude-code").find((each) => each.story === "work" && each.version === version)!;
  const { home, work } = placeRecording(recording, scratch);
  using door = new Door();
  const [found] = [...sessionsHere(AGENTS, { environment: {}, home }, door)];
  const whole = readFileSync(found!.session.path);
  return { ...found!, home, work, whole, lines: linesOf(whole), backups: join(scratch, "backups") };
}

/** What was said, with its ids: all that Claude Code loads. */
const said = (bytes: Buffer): unknown[] =>
  linesOf(bytes)
    .map(parse)
    .filter(({ uuid, message }) => uuid !== undefined && message !== undefined)
    .map(({ type, uuid, parentUuid, message }) => ({ type, uuid, parentUuid, message }));
const isOf = (type: string) => (line: Buffer) => parse(line).type === type && parse(line).uuid !== undefined;

describe(`a session of Claude Code that was copied before (again: ${again})`, () => {
  const random = seeded(SEED);
  const somewhere = (lines: readonly Buffer[]): number => {
    const inside = lines.map((_, n) => n).filter((n) => parse(lines[n]!).uuid !== undefined && n < lines.length - 12);
    return inside[Math.floor(random() * (inside.length - 6)) + 2]!;
  };
  const harms: Record<string, { kind: string; harm(lines: readonly Buffer[]): Buffer }> = {
    emptied: { kind: "empty-file", harm: () => Buffer.alloc(0) },
    "nothing but zero bytes": { kind: "nul-run", harm: (lines) => Buffer.alloc(fileOf(lines).length) },
    "nothing but notes": {
      kind: "stub",
      harm: (lines) => fileOf(lines.filter((line) => parse(line).uuid === undefined)),
    },
    "three records lost": { kind: "lost-record", harm: (lines) => fileOf(lines.toSpliced(somewhere(lines), 3)) },
    "zero bytes in the place of two records": {
      kind: "nul-run",
      harm: (lines) => fileOf(lines.toSpliced(somewhere(lines), 2, Buffer.alloc(5_000))),
    },
    "torn in its last answer": {
      kind: "torn-record",
      harm(lines) {
        const last = lines.findLastIndex(isOf("assistant"));
        const cut = lines[last]!.subarray(0, Math.floor(lines[last]!.length * (0.1 + 0.8 * random())));
        return Buffer.concat([fileOf(lines.slice(0, last)), cut]);
      },
    },
  };
  for (const [what, { kind, harm }] of Object.entries(harms)) {
    test(`${what}: whole again, with nothing of the copy's own`, async () => {
      const { agent, session, whole, lines, backups } = place();
      writeFileSync(join(dirname(session.path), `${FORK}.jsonl`), forkOf(whole, session.id, FORK));
      writeFileSync(session.path, harm(lines));
      const { problems } = await diagnose(agent, session);
      expect(
        problems.map((problem) => problem.kind),
        again,
      ).toContain(kind);
      const fixed = await fix(agent, session, { backups });
      expect(fixed?.diagnosis.problems, again).toEqual([]);
      expect(fixed?.plan.lost, again).toEqual([]);
      const after = readFileSync(session.path);
      expect(said(after), again).toEqual(said(whole));
      expect(after.includes("Only in the fork"), again).toBe(false);
      expect(after.includes(FORK), again).toBe(false);
      expect(await fix(agent, session, { backups })).toBe(null);
    });
  }

  test("the copy lost records itself: they stand in the session that it was made from", async () => {
    const { agent, session, whole, backups } = place();
    const path = join(dirname(session.path), `${FORK}.jsonl`);
    const fork = forkOf(whole, session.id, FORK);
    const damaged = linesOf(fork).toSpliced(20, 3);
    writeFileSync(path, fileOf(damaged));
    const place2 = { agent: "claude-code", id: FORK, path, parts: [] };
    const fixed = await fix(agent, place2, { backups });
    expect([fixed?.diagnosis.problems, fixed?.plan.lost], again).toEqual([[], []]);
    expect(said(readFileSync(path))).toEqual(said(fork));
  });

  test("nothing but notes, by an older version that does not say what it copied: the last note names a record", async () => {
    const { agent, session, whole, lines, backups } = place("2.1.197");
    const fork = forkOf(whole, session.id, FORK)
      .toString("utf8")
      .replaceAll(/,"requestSessionId":"[^"]*"/g, "");
    writeFileSync(join(dirname(session.path), `${FORK}.jsonl`), fork);
    writeFileSync(session.path, fileOf(lines.filter((line) => parse(line).uuid === undefined)));
    const fixed = await fix(agent, session, { backups });
    expect(fixed?.diagnosis.problems).toEqual([]);
    expect(said(readFileSync(session.path))).toEqual(said(whole));
  });

  test("without a copy, an empty file stays as it is", async () => {
    const { agent, session, backups } = place();
    writeFileSync(session.path, "");
    expect(await fix(agent, session, { backups })).toBe(null);
    expect(readFileSync(session.path)).toEqual(Buffer.alloc(0));
  });
});

describe("the ids, the end and the place of a session of Claude Code", () => {
  test("a record with the id of another gets its own back", async () => {
    const { agent, session, lines, whole, backups } = place();
    const records = lines.map(parse);
    for (const at of records.keys()) {
      const other = records.slice(0, at).findLast(({ uuid }) => uuid !== undefined);
      const isNamed = records.slice(at + 1).find(({ uuid }) => uuid !== undefined)?.parentUuid === records[at]!.uuid;
      if (!other || records[at]!.uuid === undefined || !isNamed || at % 7 !== 0) continue;
      const doubled = Buffer.from(JSON.stringify({ ...records[at], uuid: other.uuid }));
      writeFileSync(session.path, fileOf(lines.toSpliced(at, 1, doubled)));
      const { problems } = await diagnose(agent, session);
      expect(problems.map(({ kind }) => kind)).toContain("doubled-id");
      const fixed = await fix(agent, session, { backups });
      expect(fixed?.diagnosis.problems, `line ${at + 1}`).toEqual([]);
      expect(said(readFileSync(session.path)), `line ${at + 1}`).toEqual(said(whole));
    }
  });

  /** An answer that Claude Code itself wrote at the end. */
  function withTail(lines: readonly Buffer[], more: object, message: object): Buffer {
    const last = lines.map(parse).findLast(({ type, uuid }) => type === "assistant" && uuid !== undefined)!;
    const made = {
      id: "6c2b3c1e-6c55-4c0e-9d35-1f2e3d4c5b6a",
      type: "message",
      role: "assistant",
      model: "<synthetic>",
    };
    const usage = { input_tokens: 0, output_tokens: 0 };
    const stop = { stop_reason: "stop_sequence", stop_sequence: "", usage };
    const uuid = "00000000-0000-4000-8000-00000000000f";
    const tail = { ...last, ...more, parentUuid: last.uuid, uuid, message: { ...made, ...stop, ...message } };
    const note = { type: "last-prompt", lastPrompt: "x", leafUuid: uuid, sessionId: "s" };
    return fileOf([...lines, ...[tail, note].map((record) => Buffer.from(JSON.stringify(record)))]);
  }

  test("an answer that no model gave is taken out of the end", async () => {
    const { agent, session, lines, whole, backups } = place();
    writeFileSync(session.path, withTail(lines, {}, { content: [{ type: "text", text: "No response requested." }] }));
    const { problems } = await diagnose(agent, session);
    expect(problems.map(({ kind }) => kind)).toEqual(["synthetic-tail"]);
    const fixed = await fix(agent, session, { backups });
    expect(fixed?.diagnosis.problems).toEqual([]);
    expect(said(readFileSync(session.path))).toEqual(said(whole));
    expect(linesOf(readFileSync(session.path)).at(-1)!.toString()).toContain(
      String(
        linesOf(whole)
          .map(parse)
          .findLast(({ type, uuid }) => type === "assistant" && uuid)!.uuid,
      ),
    );
  });

  test("a notice of an error at the end, and an answer that no model gave in the middle, are no problem", async () => {
    const { agent, session, lines } = place();
    const content = [{ type: "text", text: "API Error: 529 overloaded" }];
    writeFileSync(session.path, withTail(lines, { isApiErrorMessage: true }, { content }));
    expect((await diagnose(agent, session)).problems).toEqual([]);
  });

  test("in the folder of another project: moved, with its sub-agents, and back by undo", async () => {
    const { agent, session, whole, lines, backups } = place();
    const right = dirname(session.path);
    const wrong = join(dirname(right), "-nowhere-at-all");
    const name = basename(session.path);
    mkdirSync(join(wrong, session.id, "subagents"), { recursive: true });
    writeFileSync(join(wrong, session.id, "subagents", "agent-a.jsonl"), "");
    renameSync(session.path, join(wrong, name));
    const lost = { ...session, path: join(wrong, name) };
    expect((await diagnose(agent, lost)).problems.map(({ kind }) => kind)).toEqual(["wrong-folder"]);
    // And damaged too.
    writeFileSync(lost.path, fileOf(lines).subarray(0, -2));
    const fixed = await fix(agent, lost, { backups });
    expect([fixed?.diagnosis.problems, fixed?.diagnosis.session.path]).toEqual([[], join(right, name)]);
    expect(said(readFileSync(join(right, name)))).toEqual(said(whole));
    expect(readFileSync(join(right, session.id, "subagents", "agent-a.jsonl"), "utf8")).toBe("");
  });

  test("a folder that was renamed, came from elsewhere, or holds a copy is no mistake", async () => {
    const { agent, session, work, whole } = place();
    const right = dirname(session.path);
    const kinds = async (path: string): Promise<string[]> =>
      (await diagnose(agent, { ...session, path })).problems.map(({ kind }) => kind);
    const other = join(dirname(right), "-elsewhere-project", basename(session.path));
    mkdirSync(dirname(other));
    writeFileSync(other, whole);
    // The right folder has it too.
    expect(await kinds(other)).toEqual([]);
    // Neither the project nor its folder is on this machine.
    rmSync(right, { recursive: true });
    rmSync(work, { recursive: true });
    expect(await kinds(other)).toEqual([]);
    // The folder it lies in is that of a project which is there.
    mkdirSync(right);
    const moved = join(scratch, "renamed");
    mkdirSync(moved);
    const renamed = join(dirname(right), moved.replaceAll(/[^a-zA-Z0-9]/g, "-"), basename(session.path));
    mkdirSync(dirname(renamed));
    writeFileSync(renamed, whole);
    expect(await kinds(renamed)).toEqual([]);
    // A file that somebody put anywhere.
    const download = join(scratch, basename(session.path));
    writeFileSync(download, whole);
    expect(await kinds(download)).toEqual([]);
  });
});
