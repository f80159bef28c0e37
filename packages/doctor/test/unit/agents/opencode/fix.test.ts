import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { seedOf } from "../../../../../holdfast/test/seed.ts";
import { opencode } from "../../../../src/agents/opencode/index.ts";
import { MIGRATIONS } from "../../../../src/agents/opencode/schema.ts";
import type { SessionPlace } from "../../../../src/contract/agent.ts";
import { diagnose } from "../../../../src/diagnosis/diagnose.ts";
import { fix } from "../../../../src/fix/fix.ts";
import { seeded } from "../../../damage/line-damage.ts";
import { FILE_DAMAGE, ROW_DAMAGE } from "../../../damage/opencode-damage.ts";
import { listRecordings, placeRecording } from "../../../real/recording.ts";
import { kindsIn, recordsOf, sessionsIn } from "../agent-suite.ts";

const SEED = seedOf(import.meta.url, "unit");
const EFFORT = Number(process.env["HOLDFAST_EFFORT"] ?? 0);
const PLACES = Math.max(1, EFFORT);
const STORIES = EFFORT > 0 ? ["work", "subagent", "two"] : ["subagent"];
const recordings = listRecordings("opencode");
let scratch = "";
let count = 0;
beforeAll(() => {
  scratch = mkdtempSync(join(tmpdir(), "holdfast-opencode-fix-"));
});
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

function placed(story: string): { readonly home: string; readonly sessions: readonly SessionPlace[] } {
  const { home } = placeRecording(recordings.find((each) => each.story === story)!, join(scratch, String(count++)));
  return { home, sessions: sessionsIn(opencode, home) };
}

const unitsOf = async (session: SessionPlace): Promise<string[]> =>
  (await recordsOf(opencode, session)).flatMap(({ units }) => units.map((unit) => JSON.stringify(unit)));

const backups = (): string => join(scratch, "backups");

describe("OpenCode: repaired", () => {
  for (const [index, damage] of [...ROW_DAMAGE, ...FILE_DAMAGE].entries())
    test(damage.name, async () => {
      for (const [number, story] of STORIES.entries())
        for (let place = 0; place < PLACES; place++) {
          const seed = SEED + 1_000 * index + 100 * number + place;
          const { home, sessions } = placed(story);
          const healthy = new Map<string, string[]>();
          for (const each of sessions) healthy.set(each.id, await unitsOf(each));
          if (!damage.harm({ agent: opencode, session: sessions[0]!, home, random: seeded(seed) })) continue;
          const words = `${damage.name}, ${story}, seed ${seed}`;
          const found: string[] = [];
          for (const session of sessionsIn(opencode, home)) found.push(...kindsIn(await diagnose(opencode, session)));
          if (damage.named.length > 0)
            expect(
              found.some((kind) => (damage.named as readonly string[]).includes(kind)),
              `${words}: ${found}`,
            ).toBe(true);
          for (const session of sessionsIn(opencode, home)) {
            const fixed = await fix(opencode, session, { backups: backups() });
            if (fixed) expect(kindsIn(fixed.diagnosis), words).toEqual([]);
            else if (session.id.startsWith("ses_"))
              expect(kindsIn(await diagnose(opencode, session)), words).toEqual([]);
          }
          const bytes = readFileSync(sessions[0]!.path);
          // Of a file that tells no session any more, nothing can be made.
          const after = sessionsIn(opencode, home).filter(({ id }) => id.startsWith("ses_"));
          for (const session of after) {
            expect(kindsIn(await diagnose(opencode, session)), words).toEqual([]);
            expect(await fix(opencode, session, { backups: backups() })).toBeNull();
          }
          expect(readFileSync(sessions[0]!.path).equals(bytes)).toBe(true);
          if (!damage.isLossless) continue;
          expect(after.map(({ id }) => id).toSorted(), words).toEqual([...healthy.keys()].toSorted());
          for (const session of after) expect(await unitsOf(session), words).toEqual(healthy.get(session.id));
        }
    });

  test("the rows of other sessions stay as they are, byte for byte", async () => {
    const { home, sessions } = placed("two");
    const path = sessions[0]!.path;
    const [mine, other] = sessions.map(({ id }) => id);
    const rowsOf = (id: string): unknown[] => {
      using database = new DatabaseSync(path, { readOnly: true });
      return ["message", "part"].map((table) =>
        database
          .prepare(`select rowid, id, cast(data as blob) as data from ${table} where session_id = ? order by id`)
          .all(id),
      );
    };
    {
      using database = new DatabaseSync(path);
      database.prepare("update part set data = '' where session_id = ?").run(mine!);
      database
        .prepare("update part set data = data || x'e4' where session_id = ? limit 1".replace(" limit 1", ""))
        .run(other!);
    }
    const before = rowsOf(other!);
    const session = sessionsIn(opencode, home).find(({ id }) => id === mine)!;
    const fixed = await fix(opencode, session, { backups: backups() });
    expect(fixed?.diagnosis.problems).toEqual([]);
    expect(rowsOf(other!)).toEqual(before);
  });

  test("of a damaged file, what OpenCode needs to start comes back", async () => {
    const { home, sessions } = placed("work");
    for (const damage of FILE_DAMAGE.filter(({ name }) => /migration|project|event_sequence/.test(name))) {
      damage.harm({ agent: opencode, session: sessions[0]!, home, random: seeded(SEED) });
      await fix(opencode, sessionsIn(opencode, home)[0]!, { backups: backups() });
    }
    using database = new DatabaseSync(sessions[0]!.path, { readOnly: true });
    const countOf = (table: string): unknown => database.prepare(`select count(*) as n from ${table}`).get()!["n"];
    expect([countOf("migration"), countOf("project"), countOf("event_sequence")]).toEqual([MIGRATIONS.length, 1, 1]);
    expect(database.prepare("pragma foreign_key_check").all()).toEqual([]);
    expect(database.prepare("pragma integrity_check").get()).toEqual({ integrity_check: "ok" });
  });

  test("what the log of the old file holds is kept, and does not come over the new one", async () => {
    const { home, sessions } = placed("work");
    const { path } = sessions[0]!;
    const before = await unitsOf(sessions[0]!);
    const open = new DatabaseSync(path, { enableForeignKeyConstraints: false });
    open.exec("pragma journal_mode = wal; pragma wal_autocheckpoint = 0; update session set title = 'Newer'");
    open.exec("delete from message where id = (select max(id) from message)");
    const log = readFileSync(`${path}-wal`);
    const file = readFileSync(path);
    open.close();
    // As a kill leaves them.
    const { writeFileSync } = await import("node:fs");
    writeFileSync(path, file);
    writeFileSync(`${path}-wal`, log);
    const session = sessionsIn(opencode, home)[0]!;
    const fixed = await fix(opencode, session, { backups: backups() });
    expect(fixed?.diagnosis.problems).toEqual([]);
    expect(fixed?.diagnosis.title).toBe("Newer");
    expect(readFileSync(`${path}-wal`).length).toBe(0);
    expect((await unitsOf(session)).slice(1)).toEqual(before.slice(1));
  });
});
