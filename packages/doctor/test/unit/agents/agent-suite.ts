import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import type { Agent, SessionPlace } from "../../../src/contract/agent.ts";
import type { SessionRecord } from "../../../src/contract/record.ts";
import { type Diagnosis, diagnose } from "../../../src/diagnosis/diagnose.ts";
import { Door } from "../../../src/files/door.ts";
import { fix } from "../../../src/fix/fix.ts";
import type { LineFormat } from "../../../src/jsonl/read-lines.ts";
import { listRecordings, placeRecording, type Recording, ROOT } from "../../real/recording.ts";
import { type LineDamage, seededRandom } from "./line-damage.ts";

/** What every reader must do with the sessions that its agent wrote, and with each kind of damage to them. */

const PLACES = 2 * Number(process.env["HOLDFAST_EFFORT"] ?? 1);

/** A folder whose path is as long as the one of the recordings, so that offsets of bytes stay true. */
export function scratchFolder(): { readonly folder: string; [Symbol.dispose](): void } {
  const folder = mkdtempSync("/tmp/hf-lab");
  expect(folder.length, "places of recorded bytes").toBe(ROOT.length);
  return { folder, [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }) };
}

export function sessionsIn(agent: Agent, home: string): SessionPlace[] {
  using door = new Door();
  return agent.homes({}, home).flatMap((root) => [...agent.find(root, door)]);
}

export async function recordsOf(agent: Agent, session: SessionPlace): Promise<SessionRecord[]> {
  using door = new Door();
  const items = await agent.read(session, door);
  return [...items].flatMap((item) => (item.type === "record" ? [item.record] : []));
}

export const kindsIn = ({ problems }: Diagnosis): string[] => problems.map(({ kind }) => kind);

export interface LineAgentSuite {
  readonly agent: Agent;
  /** Whose recordings. */
  readonly format: string;
  readonly damages: readonly LineDamage[];
  readonly seed: number;
  readonly lines: LineFormat;
}

/** For agents that write one record in each line. */
export function describeLineAgent({ agent, format, damages, seed }: LineAgentSuite): void {
  const recordings = listRecordings(format);
  describe(`${agent.title}: recorded sessions`, () => {
    test("there are some", () => expect(recordings.length).toBeGreaterThan(2));
    for (const recording of recordings) {
      test(`${recording.version} ${recording.story}: found, healthy, and every line is a record that is understood`, async () => {
        using scratch = scratchFolder();
        const { home } = placeRecording(recording, scratch.folder);
        const sessions = sessionsIn(agent, home);
        expect(sessions.map(({ id }) => id).toSorted()).toEqual(recording.sessions.map(({ id }) => id).toSorted());
        for (const session of sessions) {
          const { problems, records } = await diagnose(agent, session);
          expect(problems).toEqual([]);
          expect(records).toMatchObject({ recovered: 0, partial: 0, unreadable: 0 });
          for (const record of await recordsOf(agent, session))
            expect(record.kind, String(record.place.line)).not.toBe("unknown");
        }
      });
    }
  });

  describe(`${agent.title}: damage`, () => {
    const folder = mkdtempSync(join(tmpdir(), "holdfast-reader-"));
    afterAll(() => rmSync(folder, { recursive: true, force: true }));
    for (const [index, damage] of damages.entries()) {
      test(damage.kind, async () => {
        let cases = 0;
        for (const recording of recordings)
          for (const session of sessionsOf(agent, recording, join(folder, `${index}`)))
            for (let place = 0; place < PLACES; place++)
              if (await harmAndRead(agent, session, damage, seed + 1_000 * index + place)) cases++;
        expect(cases).toBeGreaterThan(0);
      });
    }
  });
}

export interface PlacedSession extends SessionPlace {
  readonly lines: readonly string[];
  /** Of each line. */
  readonly units: readonly (readonly string[])[];
}

function sessionsOf(agent: Agent, recording: Recording, folder: string, format?: LineFormat): PlacedSession[] {
  const { home } = placeRecording(recording, join(folder, recording.version, recording.story));
  return sessionsIn(agent, home).map((session) => {
    const lines = readFileSync(session.path, "utf8").split("\n").slice(0, -1);
    // Alone: what its indexes say is tested apart from this, and takes longer.
    const units = lines.map((line) =>
      (format?.understand(JSON.parse(line))?.units ?? []).map((unit) => JSON.stringify(unit)),
    );
    return { ...session, path: join(folder, basename(session.path)), lines, units };
  });
}

export async function harmAndRead(
  agent: Agent,
  session: PlacedSession,
  damage: LineDamage,
  seed: number,
): Promise<boolean> {
  const { lines, path } = session;
  const harm = damage.harm(lines, seededRandom(seed));
  if (harm === null) return false;
  writeFileSync(path, harm.bytes);
  const what = `${damage.kind}, seed ${seed}, ${basename(path)}`;
  const found = kindsIn(await diagnose(agent, session));
  expect(
    found.some((kind) => damage.named.includes(kind)),
    `${what}: ${found.join(", ") || "nothing found"}`,
  ).toBe(true);
  const readable = (await recordsOf(agent, session)).filter(({ state }) => state === "intact" || state === "recovered");
  const values = readable.map(({ value }) => JSON.stringify(value));
  const counts = new Map<string, number>();
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
  for (const [n, line] of lines.entries()) {
    if (harm.lost.includes(n)) continue;
    const value = JSON.stringify(JSON.parse(line));
    expect(counts.get(value) ?? 0, `${what}: line ${n + 1} is readable and was not found`).toBeGreaterThan(0);
    counts.set(value, counts.get(value)! - 1);
  }
  return true;
}

/** What a repair must do: nothing is wrong afterwards, nothing readable is missing, a second one changes no byte. */
export function describeFix({ agent, format, damages, seed, lines }: LineAgentSuite): void {
  const recordings = listRecordings(format);
  describe(`${agent.title}: repair`, () => {
    const folder = mkdtempSync(join(tmpdir(), "holdfast-fix-"));
    afterAll(() => rmSync(folder, { recursive: true, force: true }));
    test("a healthy session is left alone", async () => {
      for (const recording of recordings)
        for (const session of sessionsOf(agent, recording, join(folder, "healthy"), lines)) {
          writeFileSync(session.path, session.lines.map((line) => `${line}\n`).join(""));
          expect(await fix(agent, session, { backups: join(folder, "backups") }), session.path).toBe(null);
        }
    });
    for (const [index, damage] of damages.entries()) {
      if (damage.named.includes("empty-file")) continue;
      test(damage.kind, async () => {
        let cases = 0;
        for (const recording of recordings)
          for (const session of sessionsOf(agent, recording, join(folder, `${index}`), lines))
            for (let place = 0; place < PLACES; place += 3)
              if (await harmAndFix(agent, session, damage, seed + 1_000 * index + place, join(folder, "backups")))
                cases++;
        expect(cases).toBeGreaterThan(0);
      });
    }
  });
}

export async function harmAndFix(
  agent: Agent,
  session: PlacedSession,
  damage: LineDamage,
  seed: number,
  backups: string,
  /** Where nothing repeats a call, the result of one that is lost becomes text. */
  { keepsResults = true }: { readonly keepsResults?: boolean } = {},
): Promise<boolean> {
  const harm = damage.harm(session.lines, seededRandom(seed));
  if (harm === null) return false;
  writeFileSync(session.path, harm.bytes);
  const what = `${damage.kind}, seed ${seed}, ${basename(session.path)}`;
  const fixed = await fix(agent, session, { backups });
  expect(fixed, `${what}: nothing was repaired`).not.toBe(null);
  expect(kindsIn(fixed!.diagnosis), what).toEqual([]);
  const speech = unitsOf(await recordsOf(agent, session));
  for (const [n, units] of session.units.entries()) {
    if (harm.lost.includes(n)) continue;
    for (const unit of units)
      if (keepsResults || !unit.startsWith('{"type":"result"'))
        expect(speech, `${what}: a unit of line ${n + 1} is missing`).toContain(unit);
  }
  const after = readFileSync(session.path);
  expect(await fix(agent, session, { backups }), `${what}: repaired twice`).toBe(null);
  expect(readFileSync(session.path).equals(after)).toBe(true);
  return true;
}

const unitsOf = (records: readonly SessionRecord[]): string[] =>
  records.flatMap(({ units }) => units.map((unit) => JSON.stringify(unit)));
