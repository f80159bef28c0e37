import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { AGENTS, Door, diagnose, sessionsAt, sessionsHere } from "../../../../src/index.ts";
import { listRecordings, placeRecording } from "../../../real/recording.ts";

let scratch = "";
beforeAll(() => {
  scratch = mkdtempSync(join(tmpdir(), "holdfast-doctor-test-"));
});
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const RECORDINGS = listRecordings("claude-code");

describe("Claude Code", () => {
  test("there are recordings", () => expect(RECORDINGS.length).toBeGreaterThan(0));

  for (const recording of RECORDINGS) {
    test(`${recording.version}, ${recording.story}: every session is found and healthy, with its units`, async () => {
      const { home } = placeRecording(recording, join(scratch, recording.version, recording.story));
      using door = new Door();
      const found = [...sessionsHere(AGENTS, { environment: {}, home }, door)];
      expect(found.map(({ agent, session }) => [agent.name, session.id]).toSorted()).toEqual(
        recording.sessions.map(({ id }) => ["claude-code", id]).toSorted(),
      );
      for (const { agent, session } of found) {
        const diagnosis = await diagnose(agent, session);
        expect(diagnosis.problems).toEqual([]);
        const loaded = recording.sessions.find(({ id }) => id === session.id)!.units;
        const count = (kind: string): number => loaded.filter((unit) => unit.kind === kind).length;
        expect(diagnosis.units.call ?? 0).toBeGreaterThanOrEqual(count("call"));
        expect(diagnosis.units.result ?? 0).toBeGreaterThanOrEqual(count("result") - diagnosis.callsInterrupted);
      }
    });

    test(`${recording.version}, ${recording.story}: found by content, in a folder with any name`, async () => {
      const { home } = placeRecording(recording, join(scratch, "named", recording.version, recording.story));
      using door = new Door();
      const ids: string[] = [];
      for await (const { agent, session } of sessionsAt(home, AGENTS, { environment: {}, home: "/nowhere" }, door)) {
        expect(agent?.name).toBe("claude-code");
        ids.push(session!.id);
      }
      expect(ids.toSorted()).toEqual(recording.sessions.map(({ id }) => id).toSorted());
    });
  }
});
