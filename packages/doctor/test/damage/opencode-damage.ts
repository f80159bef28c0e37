import { readFileSync, writeFileSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import type { ProblemKind } from "../../src/index.ts";
import type { Random } from "./line-damage.ts";
import { bytesDamage, pick, type SessionDamage } from "./session-damage.ts";

/** What happens to the rows and pages of OpenCode's database. */

type Harm = (database: DatabaseSync, random: Random, session: string) => unknown;

function rowDamage(name: string, named: readonly ProblemKind[], isLossless: boolean, harm: Harm): SessionDamage {
  return {
    ...{ name: `row: ${name}`, named, isLossless },
    harm({ session, random }) {
      using database = new DatabaseSync(session.path, { enableForeignKeyConstraints: false });
      // What is gone is gone: SQLite leaves what was deleted in its place.
      database.exec("pragma secure_delete = on");
      return harm(database, random, session.id) !== false;
    },
  };
}

/** Runs a statement for one of the rows that another statement finds. */
const onOne =
  (sql: string, find: string): Harm =>
  (database, random, session) => {
    const ids = database.prepare(find).all(session);
    if (ids.length === 0) return false;
    return database.prepare(sql).run(String(pick(ids, random)["id"]));
  };

/** The same where the log of events does not repeat it. */
const withoutLog =
  (harm: Harm): Harm =>
  (database, random, session) => {
    database.exec("delete from event; vacuum");
    return harm(database, random, session);
  };

const PARTS = "select id from part where session_id = ?";
const MESSAGES = "select id from message where session_id = ?";
const PROMPTS = `${MESSAGES} and data like '%"role":"user"%'`;
const CALLS = 'select id from part where session_id = ? and data like \'%"type":"tool"%"status":"completed"%\'';
const HALF = "substr(data, 1, length(data) / 2)";
const half = (table: string): string => `update ${table} set data = ${HALF} where id = ?`;
const emptied = onOne("update part set data = '' where id = ?", PARTS);
const lostPart = onOne("delete from part where id = ?", PARTS);
const lostMessage = onOne("delete from message where id = ?", MESSAGES);
const noInput = onOne("update part set data = json_set(data, '$.state.input', null) where id = ?", CALLS);
const noOutput = onOne("update part set data = json_remove(data, '$.state.output') where id = ?", CALLS);
const halfInput = onOne(
  `update part set data = json_set(data, '$.state.input', '{"command": "ec') where id = ?`,
  CALLS,
);
const poisoned = onOne(
  `update part set data = json_set(data, '$.state.output', replace(hex(zeroblob(200)), '00', char(0) || 'x')) where id = ?`,
  CALLS,
);
const lostSession: Harm = (database, _, session) => database.prepare("delete from session where id = ?").run(session);
const wholeMessage: Harm = (database, random, session) => {
  const { id } = pick(database.prepare(MESSAGES).all(session), random);
  for (const sql of ["delete from part where message_id = ?", "delete from message where id = ?"])
    database.prepare(sql).run(String(id));
};
const badByte = onOne(
  `update part set data = cast(replace(cast(data as blob), cast('"text":"' as blob), cast('"text":"' as blob) || x'e4') as text) where id = ?`,
  `select id from part where session_id = ? and data like '%"text":"%'`,
);

export const ROW_DAMAGE: readonly SessionDamage[] = [
  rowDamage("an empty part", ["damaged-row"], true, emptied),
  rowDamage("half a part", ["damaged-row"], true, onOne(half("part"), PARTS)),
  rowDamage(
    "zeros in a part",
    ["damaged-row"],
    true,
    onOne("update part set data = zeroblob(length(data)) where id = ?", PARTS),
  ),
  rowDamage(
    "a part without its last bracket",
    ["damaged-row"],
    true,
    withoutLog(onOne("update part set data = substr(data, 1, length(data) - 1) where id = ?", PARTS)),
  ),
  rowDamage("half a message", ["damaged-row"], true, onOne(half("message"), MESSAGES)),
  rowDamage("an empty message", ["damaged-row"], true, onOne("update message set data = '' where id = ?", MESSAGES)),
  rowDamage("a part is lost", ["missing-row"], true, lostPart),
  rowDamage("a message is lost", ["missing-row"], true, lostMessage),
  rowDamage("a message is lost with its parts", ["missing-row"], true, wholeMessage),
  rowDamage("the session's row is lost", ["missing-row"], true, lostSession),
  rowDamage(
    "a column of the session is half",
    ["damaged-row"],
    true,
    onOne("update session set model = '{\"id\":' where id = ?", "select id from session where id = ?"),
  ),
  rowDamage("a byte that is not UTF-8", ["invalid-utf8"], true, badByte),
  rowDamage("a call with null input", ["bad-tool-input"], true, noInput),
  rowDamage("a call with half an input", ["bad-tool-input"], true, halfInput),
  rowDamage("a call without its result", ["call-without-result"], true, noOutput),
  rowDamage("binary output", ["poisoned-result"], false, poisoned),
  rowDamage("an empty part, no log", ["damaged-row"], false, withoutLog(emptied)),
  rowDamage("half a part, no log", ["damaged-row"], false, withoutLog(onOne(half("part"), PARTS))),
  rowDamage("half a message, no log", ["damaged-row"], false, withoutLog(onOne(half("message"), MESSAGES))),
  rowDamage(
    "an empty message, no log",
    ["damaged-row"],
    false,
    withoutLog(onOne("update message set data = '' where id = ?", MESSAGES)),
  ),
  rowDamage("a message is lost, no log", ["missing-row"], false, withoutLog(lostMessage)),
  rowDamage("the session's row is lost, no log", ["missing-row"], false, withoutLog(lostSession)),
  rowDamage(
    "a prompt is lost with its parts, no log",
    ["lost-record"],
    false,
    withoutLog((database, random, session) => {
      const { id } = pick(database.prepare(PROMPTS).all(session), random);
      for (const sql of ["delete from part where message_id = ?", "delete from message where id = ?"])
        database.prepare(sql).run(String(id));
    }),
  ),
  rowDamage("a byte that is not UTF-8, no log", ["invalid-utf8"], false, withoutLog(badByte)),
  rowDamage("a call with null input, no log", ["bad-tool-input"], false, withoutLog(noInput)),
  rowDamage("a call without its result, no log", ["call-without-result"], false, withoutLog(noOutput)),
];

const FILE = ["damaged-database", "damaged-page"] as const;
const PAGE_BYTES = 4_096;

const zeroPage = (table: string): SessionDamage => ({
  ...{ name: `file: the first page of ${table} is zeros`, named: FILE, isLossless: false },
  harm({ session }) {
    const { path } = session;
    const page = (() => {
      using database = new DatabaseSync(path, { readOnly: true });
      return Number(database.prepare("select rootpage from sqlite_schema where name = ?").get(table)?.["rootpage"]);
    })();
    const bytes = readFileSync(path);
    writeFileSync(path, bytes.fill(0, (page - 1) * PAGE_BYTES, page * PAGE_BYTES));
    return true;
  },
});

export const FILE_DAMAGE: readonly SessionDamage[] = [
  ...["session", "message", "part", "event", "migration", "project", "event_sequence", "part_session_idx"].map(
    zeroPage,
  ),
  bytesDamage({ name: "file: no header", named: FILE, isLossless: true }, (bytes, random) =>
    Buffer.from(bytes).fill(random() < 0.5 ? 0 : 0xa5, 0, 100),
  ),
  bytesDamage({ name: "file: the first page is zeros", named: FILE, isLossless: false }, (bytes) =>
    Buffer.from(bytes).fill(0, 0, PAGE_BYTES),
  ),
  bytesDamage({ name: "file: its second half is missing", named: FILE, isLossless: false }, (bytes) =>
    bytes.subarray(0, bytes.length >> 1),
  ),
  bytesDamage({ name: "file: its end is missing", named: FILE, isLossless: false }, (bytes, random) =>
    bytes.subarray(0, PAGE_BYTES * (2 + Math.floor(random() * (bytes.length / PAGE_BYTES - 3)))),
  ),
  bytesDamage({ name: "file: pages of zeros", named: FILE, isLossless: false }, (bytes, random) => {
    const harmed = Buffer.from(bytes);
    for (let n = 0; n < 4; n++) {
      const page = Math.floor(random() * (bytes.length / PAGE_BYTES));
      harmed.fill(0, page * PAGE_BYTES, (page + 1) * PAGE_BYTES);
    }
    return harmed;
  }),
  bytesDamage({ name: "file: pages of noise", named: [], isLossless: false }, (bytes, random) => {
    const harmed = Buffer.from(bytes);
    const page = Math.floor(random() * (bytes.length / PAGE_BYTES)) * PAGE_BYTES;
    for (let at = page; at < page + PAGE_BYTES; at++) harmed[at] = Math.floor(random() * 256);
    return harmed;
  }),
];
