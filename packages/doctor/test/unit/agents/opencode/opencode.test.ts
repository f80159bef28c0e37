import {
  closeSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { seedOf } from "../../../../../holdfast/test/seed.ts";
import { opencode } from "../../../../src/agents/opencode/index.ts";
import type { SessionPlace } from "../../../../src/contract/agent.ts";
import type { Unit } from "../../../../src/contract/record.ts";
import { diagnose } from "../../../../src/diagnosis/diagnose.ts";
import { AGENTS, Door, readConversations, sessionsAt } from "../../../../src/index.ts";
import { seeded } from "../../../damage/line-damage.ts";
import { listRecordings, placeRecording, type Recording } from "../../../real/recording.ts";
import { kindsIn, recordsOf, sessionsIn } from "../agent-suite.ts";

const SEED = seedOf(import.meta.url, "unit");
const PLACES = 2 * Number(process.env["HOLDFAST_EFFORT"] ?? 1);
const recordings = listRecordings("opencode");
let scratch = "";
let count = 0;
beforeAll(() => {
  scratch = mkdtempSync(join(tmpdir(), "holdfast-opencode-"));
});
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

interface Placed {
  readonly home: string;
  readonly path: string;
  readonly recording: Recording;
  readonly wanted: Recording["sessions"];
}

function placed(recording: Recording): Placed {
  const root = join(scratch, String(count++));
  const { home, sessions } = placeRecording(recording, root);
  return { home, path: join(home, ".local/share/opencode/opencode.db"), recording, wanted: sessions };
}

const story = (name: string): Recording => recordings.find((each) => each.story === name)!;

/** What was said in the main conversation, as the recordings say it. */
async function saidIn(session: SessionPlace): Promise<unknown[]> {
  const records = await recordsOf(opencode, session);
  return records.flatMap(({ thread, units }) => (thread === "main" ? units.flatMap(wordsOf) : []));
}

function wordsOf(unit: Unit): unknown[] {
  switch (unit.type) {
    case "user":
    case "assistant":
      return [[unit.type, unit.content]];
    case "compaction":
      return [["assistant", unit.summary]];
    case "reasoning":
      return [["reasoning", unit.text]];
    case "call":
      return [["call", JSON.stringify(unit.input), unit.id, unit.name]];
    case "result":
      return unit.content === "[Tool execution was interrupted]" ? [] : [["result", unit.content, unit.call]];
    default:
      return [];
  }
}

const wantedOf = ({ units }: Recording["sessions"][number]): unknown[] =>
  units.map(({ kind, text, call, name }) => [kind, text, ...(call ? [call] : []), ...(name ? [name] : [])]);

describe("OpenCode: recorded sessions", () => {
  test("there are some", () => expect(recordings.length).toBeGreaterThan(4));
  for (const recording of recordings)
    test(`${recording.version} ${recording.story}: found, healthy, and what OpenCode itself shows`, async () => {
      const { home, wanted } = placed(recording);
      const sessions = sessionsIn(opencode, home);
      expect(sessions.map(({ id }) => id).toSorted()).toEqual(wanted.map(({ id }) => id).toSorted());
      for (const session of sessions) {
        const { problems, records } = await diagnose(opencode, session);
        expect(problems).toEqual([]);
        expect(records).toMatchObject({ recovered: 0, partial: 0, unreadable: 0 });
        for (const { kind, place } of await recordsOf(opencode, session))
          expect(kind, String(place.row?.id)).not.toBe("unknown");
        expect(await saidIn(session)).toEqual(wantedOf(wanted.find(({ id }) => id === session.id)!));
      }
    });

  test("they are found by what they hold, whatever they are called", async () => {
    const { path } = placed(story("two"));
    const folder = join(scratch, "elsewhere");
    mkdirSync(folder);
    writeFileSync(join(folder, "kept"), readFileSync(path));
    using door = new Door();
    const found: (string | null)[] = [];
    for await (const { agent } of sessionsAt(folder, AGENTS, { environment: {}, home: "/nowhere" }, door))
      found.push(agent?.name ?? null);
    expect(found).toEqual(["opencode", "opencode"]);
  });

  test("the databases of other builds lie beside it", () => {
    const { home, path } = placed(story("talk"));
    const { path: other } = placed(story("work"));
    writeFileSync(join(dirname(path), "opencode-dev.db"), readFileSync(other));
    expect(sessionsIn(opencode, home).length).toBe(2);
  });

  test("what a compaction left in view is imported beside its summary", async () => {
    const { home, path } = placed(story("compacted"));
    const shown = async (): Promise<string> => {
      const [session] = sessionsIn(opencode, home);
      using door = new Door();
      return JSON.stringify((await readConversations(opencode, session!, door)).conversations[0]!.messages);
    };
    const before = await shown();
    expect(before).toContain("Summary: the user");
    expect(before).not.toContain("All three.");
    const database = new DatabaseSync(path);
    const asks = database.prepare("select message_id as id from part where data like '%Do three things%'").get()!;
    database
      .prepare("update part set data = json_set(data, '$.tail_start_id', ?) where data like '%\"compaction\"%'")
      .run(String(asks["id"]));
    database.close();
    const after = await shown();
    expect(after).toMatch(/Summary: the user.*Do three things.*All three\..*what do egrets eat/);
    expect(after).not.toContain("Look around");
  });

  test("a sub-agent has a thread of its own, and the call that started it", async () => {
    const { home } = placed(story("subagent"));
    const [session] = sessionsIn(opencode, home);
    using door = new Door();
    const { conversations, title } = await readConversations(opencode, session!, door);
    expect(title).toContain("herons");
    expect(conversations.map(({ call, messages }) => [call, messages.length > 1])).toEqual([
      [null, true],
      ["call_0_0_0", true],
    ]);
  });
});

describe("OpenCode: the files of older versions", () => {
  /** The same objects, as files. */
  function filesOf(recording: Recording): { readonly home: string; readonly storage: string } {
    const { home, path } = placed(recording);
    const storage = join(dirname(path), "storage");
    const database = new DatabaseSync(path);
    const write = (folder: string, id: unknown, value: object): void => {
      mkdirSync(join(storage, folder), { recursive: true });
      writeFileSync(join(storage, folder, `${id}.json`), JSON.stringify({ id, ...value }, null, 2));
    };
    for (const { id, parent_id, title, directory } of database.prepare("select * from session").all())
      write("session/global", id, { parentID: parent_id ?? undefined, projectID: "global", title, directory });
    for (const { id, session_id, data } of database.prepare("select * from message").all())
      write(`message/${session_id}`, id, { sessionID: session_id, ...JSON.parse(String(data)) });
    for (const { id, message_id, data } of database.prepare("select * from part").all())
      write(`part/${message_id}`, id, { messageID: message_id, ...JSON.parse(String(data)) });
    database.close();
    rmSync(path);
    return { home, storage };
  }

  for (const recording of recordings)
    test(`${recording.story}: healthy, and what was said`, async () => {
      const { home } = filesOf(recording);
      const sessions = sessionsIn(opencode, home);
      expect(sessions.map(({ id }) => id).toSorted()).toEqual(recording.sessions.map(({ id }) => id).toSorted());
      for (const session of sessions) {
        expect(kindsIn(await diagnose(opencode, session))).toEqual([]);
        const said = await saidIn(session);
        expect(said.length).toBe(recording.sessions.find(({ id }) => id === session.id)!.units.length);
      }
    });

  test("damage to one file, a lost prompt, and a session that the database has too", async () => {
    const { home, storage } = filesOf(story("work"));
    const [session] = sessionsIn(opencode, home);
    const files = session!.parts;
    const part = files.find((file) => file.includes("/part/"))!;
    writeFileSync(part, readFileSync(part).subarray(0, 30));
    expect(kindsIn(await diagnose(opencode, session!))).toEqual(["damaged-row"]);
    rmSync(files.find((file) => file.includes("/message/"))!);
    expect(kindsIn(await diagnose(opencode, session!))).toEqual(["lost-record"]);
    const { path } = placed(story("work"));
    writeFileSync(join(dirname(storage), "opencode.db"), readFileSync(path));
    expect(sessionsIn(opencode, home).length).toBe(1);
    using door = new Door();
    const found: (string | null)[] = [];
    for await (const { agent } of sessionsAt(storage, AGENTS, { environment: {}, home: "/nowhere" }, door))
      found.push(agent?.name ?? null);
    expect(found).toEqual(["opencode"]);
  });
});

type Damage = (database: DatabaseSync, pick: <T>(from: readonly T[]) => T) => void;

const idsOf = (database: DatabaseSync, sql: string): string[] =>
  database
    .prepare(sql)
    .all()
    .map((row) => String(row["id"]));

/** What is done to one row, the kinds it is reported as, and whether all is there all the same. */
const ROW_DAMAGE: readonly (readonly [string, readonly string[], boolean, Damage])[] = [
  [
    "an empty part",
    ["damaged-row"],
    true,
    (database, pick) =>
      database.prepare("update part set data = '' where id = ?").run(pick(idsOf(database, "select id from part"))),
  ],
  [
    "half a part",
    ["damaged-row"],
    true,
    (database, pick) =>
      database
        .prepare("update part set data = substr(data, 1, length(data) / 2) where id = ?")
        .run(pick(idsOf(database, "select id from part"))),
  ],
  [
    "half a message",
    ["damaged-row"],
    true,
    (database, pick) =>
      database
        .prepare("update message set data = substr(data, 1, length(data) / 2) where id = ?")
        .run(pick(idsOf(database, "select id from message"))),
  ],
  [
    "a part is lost",
    ["missing-row"],
    true,
    (database, pick) =>
      database.prepare("delete from part where id = ?").run(pick(idsOf(database, "select id from part"))),
  ],
  [
    "a message is lost",
    ["missing-row"],
    true,
    (database, pick) =>
      database.prepare("delete from message where id = ?").run(pick(idsOf(database, "select id from message"))),
  ],
  [
    "a message is lost with its parts",
    ["missing-row"],
    true,
    (database, pick) => {
      const id = pick(idsOf(database, "select id from message"));
      for (const sql of ["delete from part where message_id = ?", "delete from message where id = ?"])
        database.prepare(sql).run(id);
    },
  ],
  ["the session's row is lost", ["missing-row"], true, (database) => database.exec("delete from session")],
  [
    "an empty part, and no log of events",
    ["damaged-row"],
    false,
    (database, pick) => {
      database.exec("delete from event");
      database.prepare("update part set data = '' where id = ?").run(pick(idsOf(database, "select id from part")));
    },
  ],
  [
    "a byte that is not UTF-8",
    ["invalid-utf8"],
    true,
    (database, pick) => {
      const id = pick(idsOf(database, 'select id from part where data like \'%"text":"%\''));
      database
        .prepare(
          "update part set data = cast(replace(cast(data as blob), cast('\"text\":\"' as blob), cast('\"text\":\"' as blob) || x'e4') as text) where id = ?",
        )
        .run(id);
    },
  ],
  [
    "a call with null input",
    ["bad-tool-input"],
    false,
    (database, pick) =>
      database
        .prepare("update part set data = json_set(data, '$.state.input', null) where id = ?")
        .run(pick(idsOf(database, 'select id from part where data like \'%"type":"tool"%\''))),
  ],
  [
    "a call without its result",
    ["call-without-result"],
    false,
    (database, pick) =>
      database
        .prepare("update part set data = json_remove(data, '$.state.output') where id = ?")
        .run(pick(idsOf(database, 'select id from part where data like \'%"status":"completed"%\''))),
  ],
];

describe("OpenCode: damage", () => {
  for (const [index, [name, kinds, isWhole, harm]] of ROW_DAMAGE.entries())
    test(name, async () => {
      for (let place = 0; place < PLACES; place++) {
        const random = seeded(SEED + 100 * index + place);
        const { home, path, wanted } = placed(story("work"));
        const database = new DatabaseSync(path, { enableForeignKeyConstraints: false });
        harm(database, (from) => from[Math.floor(random() * from.length)]!);
        database.close();
        const [session, ...others] = sessionsIn(opencode, home);
        expect(others).toEqual([]);
        expect(session!.id).toBe(wanted[0]!.id);
        const found = kindsIn(await diagnose(opencode, session!));
        for (const kind of kinds) expect(found, `${name}, seed ${SEED}, place ${place}`).toContain(kind);
        if (isWhole) expect(await saidIn(session!), `${name}, ${place}`).toEqual(wantedOf(wanted[0]!));
      }
    });

  test("pages of zeros: nothing throws, damage is named, and what the log repeats is there", async () => {
    for (let place = 0; place < 4 * PLACES; place++) {
      const random = seeded(SEED + 5_000 + place);
      const { home, path } = placed(story("work"));
      const size = readFileSync(path).length;
      const page = 1 + Math.floor(random() * (size / 4_096 - 1));
      const file = openSync(path, "r+");
      writeSync(file, Buffer.alloc(4_096), 0, 4_096, page * 4_096);
      closeSync(file);
      const found: string[] = [];
      for (const session of sessionsIn(opencode, home)) found.push(...kindsIn(await diagnose(opencode, session)));
      expect(found.join(), `seed ${SEED}, page ${page}`).toMatch(/damaged-/);
    }
  });

  test("the table of the parts is zeros: what was said comes from the log", async () => {
    const { home, path, wanted } = placed(story("work"));
    const database = new DatabaseSync(path);
    const { rootpage } = database.prepare("select rootpage from sqlite_schema where name = 'part'").get()!;
    database.close();
    const file = openSync(path, "r+");
    writeSync(file, Buffer.alloc(4_096), 0, 4_096, (Number(rootpage) - 1) * 4_096);
    closeSync(file);
    const [session] = sessionsIn(opencode, home);
    const { problems } = await diagnose(opencode, session!);
    expect(problems.map(({ kind }) => kind)).toContain("damaged-page");
    expect(await saidIn(session!)).toEqual(wantedOf(wanted[0]!));
  });

  const FILES: readonly (readonly [string, string, (path: string) => void])[] = [
    ["an empty file", "empty-file", (path) => writeFileSync(path, "")],
    ["its second half is missing", "damaged", (path) => truncateSync(path, readFileSync(path).length / 2)],
    ["garbage", "damaged-database", (path) => writeFileSync(path, Buffer.alloc(40_000, 7))],
    [
      "no header",
      "damaged-database",
      (path) => writeFileSync(path, Buffer.concat([Buffer.alloc(100), readFileSync(path).subarray(100)])),
    ],
  ];
  for (const [name, kind, harm] of FILES)
    test(name, async () => {
      const { home, path } = placed(story("work"));
      harm(path);
      const found: string[] = [];
      for (const session of sessionsIn(opencode, home)) found.push(...kindsIn(await diagnose(opencode, session)));
      expect(found.join()).toContain(kind);
    });

  test("a kill in the middle of a batch: the calls that ended have their results, the others are open", async () => {
    const { home, path } = placed(story("killed"));
    const database = new DatabaseSync(path);
    const running = database.prepare('select * from part where data like \'%"status":"running"%\'').get()!;
    const ended = JSON.parse(String(running["data"]));
    for (const call of ["b", "c"])
      database
        .prepare("insert into part values (?, ?, ?, 0, 0, ?)")
        .run(
          `${running["id"]}${call}`,
          String(running["message_id"]),
          String(running["session_id"]),
          JSON.stringify({ ...ended, callID: call, state: { ...ended.state, status: "completed", output: call } }),
        );
    database.close();
    const [session] = sessionsIn(opencode, home);
    const { problems, callsInterrupted } = await diagnose(opencode, session!);
    expect([problems, callsInterrupted]).toEqual([[], 1]);
  });

  test("what OpenCode itself removed is not missed", async () => {
    const { home, path } = placed(story("work"));
    const database = new DatabaseSync(path);
    const last = database.prepare("select id, session_id from message order by time_created desc, id desc").get()!;
    const data = JSON.stringify({ sessionID: last["session_id"], messageID: last["id"] });
    database
      .prepare("insert into event values ('evt_z', ?, 99999, 'message.removed.1', ?)")
      .run(String(last["session_id"]), data);
    database.prepare("delete from message where id = ?").run(String(last["id"]));
    database.close();
    const [session] = sessionsIn(opencode, home);
    expect(kindsIn(await diagnose(opencode, session!))).toEqual([]);
  });
});
