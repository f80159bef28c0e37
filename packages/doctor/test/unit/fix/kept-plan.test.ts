import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { AGENTS, Door, diagnose, fix, keepSession, planFix, sessionsHere } from "../../../src/index.ts";
import { linesOf } from "../../damage/line-damage.ts";
import { listRecordings, placeRecording } from "../../real/recording.ts";

let scratch = "";
beforeEach(() => {
  scratch = mkdtempSync(join(tmpdir(), "holdfast-kept-plan-"));
});
afterEach(() => rmSync(scratch, { recursive: true, force: true }));

/** A session of which everything but its last record was kept. */
async function kept() {
  const recording = listRecordings("claude-code").find(({ story }) => story === "work")!;
  const { home } = placeRecording(recording, join(scratch, "home"));
  using door = new Door();
  const [found] = [...sessionsHere(AGENTS, { environment: {}, home }, door)];
  const { agent, session } = found!;
  const lines = linesOf(readFileSync(session.path)).map((line) => `${String(line)}\n`);
  const last = lines.findLastIndex((line) => line.includes('"type":"assistant"') && line.includes('"text":"'));
  const folder = join(scratch, "kept");
  mkdirSync(folder);
  writeFileSync(session.path, lines.slice(0, last).join(""));
  await keepSession(agent, { ...session, parts: [] }, folder, door);
  const options = { backups: join(scratch, "backups"), keptFolderOf: () => folder };
  return { agent, session, lines: lines.slice(0, last), last: lines[last]!, options };
}

test("a record that came after what was kept stays, also if its text has to be repaired", async () => {
  const { agent, session, lines, last, options } = await kept();
  const uuid = /"uuid":"([^"]+)"/.exec(last)![1]!;
  // A raw line break in its text: it can be read whole, but not as it stands.
  writeFileSync(session.path, [...lines, last.replace('"text":"', '"text":"one\ntwo ')].join(""));
  const before = await diagnose(agent, session);
  expect(before.problems.map(({ kind }) => kind)).toEqual(["raw-line-break"]);
  const fixed = await fix(agent, session, options);
  expect(fixed?.diagnosis.problems).toEqual([]);
  expect(readFileSync(session.path, "utf8").includes(uuid)).toBe(true);
});

test("a record that was damaged after it was kept comes back as it was kept", async () => {
  const { agent, session, lines, options } = await kept();
  const at = lines.findLastIndex((line) => line.includes('"text":"'));
  writeFileSync(session.path, lines.with(at, lines[at]!.replace('"text":"', '"text":"\u0001\n')).join(""));
  const fixed = await fix(agent, session, options);
  expect(fixed?.diagnosis.problems).toEqual([]);
  expect(readFileSync(session.path, "utf8") === lines.join("")).toBe(true);
});

test("the files of a session that was deleted come back in their places, also those that lay beside its folder", async () => {
  const { agent, session: found } = await kept();
  const at = (name: string): string => join(scratch, "storage", name);
  const session = {
    ...found,
    path: at("session/project/s.json"),
    parts: [at("message/s/m.json"), at("session/project/s/p.json")],
  };
  for (const path of [session.path, ...session.parts]) {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, basename(path));
  }
  const folder = join(scratch, "kept-deleted");
  using door = new Door();
  await keepSession(agent, session, folder, door);
  rmSync(join(scratch, "storage"), { recursive: true });
  door.keptFolderOf = () => folder;
  const plan = await planFix(agent, session, door);
  const made = plan!.changes.map((change) => [change.path, change.type === "create" && String(change.bytes)]);
  expect(made.toSorted()).toEqual([session.path, ...session.parts].map((path) => [path, basename(path)]).toSorted());
});
