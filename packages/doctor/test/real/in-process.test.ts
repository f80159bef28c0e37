import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { Agent, Unit } from "./agent.ts";
import { geminiCore } from "./gemini.ts";
import { pi } from "./pi.ts";
import { installProgram } from "./programs.ts";
import { listRecordings, placeRecording } from "./recording.ts";
import { breachesOf, compareUnits, spokenIn } from "./units.ts";

/**
 * The two judges that need no process of their own. The others take minutes and gigabytes: `npm run doctor-lab`. A
 * program that cannot be installed fails these tests.
 */
const JUDGES: readonly Agent[] = [pi, geminiCore];

// At once: npm waits more than it computes.
beforeAll(() => Promise.all(JUDGES.map(({ name }) => installProgram(name))).then(() => undefined));

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "holdfast-lab-"));
});
afterEach(() => rmSync(root, { recursive: true, force: true, maxRetries: 5 }));

describe.each(JUDGES)("$name", (agent) => {
  const recordings = listRecordings(agent.format);

  test("there are recordings of the version that is installed", async () => {
    const { version } = await installProgram(agent.name);
    expect(recordings.map((recording) => recording.version)).toContain(version);
  });

  test.each(recordings)("loads $story of $program $version", async (recording) => {
    const program = await installProgram(agent.name);
    const place = placeRecording(recording, root);
    for (const { id, units } of place.sessions) {
      const verdict = await agent.judge(program, place, id);
      expect(verdict).toMatchObject({ loads: true, isListed: true });
      expect(spokenIn(verdict.units)).toEqual(spokenIn(units));
    }
  });

  test("does not load what an empty file has lost, and misses what a torn one has lost", async () => {
    const program = await installProgram(agent.name);
    const recording = recordings.find(
      ({ story, version }) => story === agent.harmedStory && version === program.version,
    );
    const judged = async (kind: string) => {
      const place = placeRecording(recording!, join(root, kind));
      const { id } = place.sessions[0]!;
      const damage = agent.damage.find((each) => each.kind === kind);
      expect(damage?.harm(agent.fileOf(place, id)!) ?? kind === "nothing").toBe(true);
      return agent.judge(program, place, id);
    };
    const before = spokenIn((await judged("nothing")).units);
    expect((await judged("empty file")).loads).toBe(false);
    expect(spokenIn((await judged("torn last record")).units)).toEqual(before.slice(0, -1));
  });
});

test("a comparison tells missing units from added ones, and sees another order", () => {
  const [a, b]: Unit[] = [
    { kind: "user", text: "a" },
    { kind: "assistant", text: "b" },
  ];
  expect(compareUnits([a!, b!], [a!, b!])).toEqual({ missing: [], added: [], isReordered: false });
  expect(compareUnits([a!, b!], [b!, a!])).toEqual({ missing: [], added: [], isReordered: true });
  expect(compareUnits([a!, a!], [a!, b!])).toEqual({ missing: [a], added: [b], isReordered: false });
});

test("a conversation that an API refuses is known by its calls", () => {
  const call: Unit = { kind: "call", text: "{}", call: "1", name: "run" };
  const result: Unit = { kind: "result", text: "ok", call: "1" };
  const user: Unit = { kind: "user", text: "go on" };
  expect(breachesOf([user, call, result, user])).toEqual([]);
  expect(breachesOf([call, user])).toEqual(["call 1 has no result"]);
  expect(breachesOf([result])).toEqual(["a result of 1 without its call before it"]);
  expect(breachesOf([{ ...call, text: "null" }, result])).toEqual(["call 1 has no input"]);
});
