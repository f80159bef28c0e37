import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterAll, describe, expect, test } from "vitest";
import { goose } from "../../../../src/agents/goose/index.ts";
import { readConversations } from "../../../../src/conversation/conversation.ts";
import { diagnose } from "../../../../src/diagnosis/diagnose.ts";
import { Door } from "../../../../src/files/door.ts";
import { fix } from "../../../../src/fix/fix.ts";
import { kindsIn, recordsOf, sessionsIn } from "../agent-suite.ts";
import { CONVERSATIONS, type RecordedMessage } from "../conversations.ts";

const root = mkdtempSync(join(tmpdir(), "holdfast-goose-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));

/** Real conversations in the tables of goose, as its sources make them: the program was not to be had. */
const TABLES = `
  create table sessions (id text primary key, name text not null default '', description text not null default '',
    working_dir text not null, created_at timestamp default current_timestamp, extension_data text default '{}');
  create table messages (id integer primary key autoincrement, message_id text, session_id text not null references
    sessions(id), role text not null, content_json text not null, created_timestamp integer not null,
    timestamp timestamp default current_timestamp, tokens integer, metadata_json text);
  create index idx_messages_session on messages(session_id);
`;

const blocksOf = ({ content }: RecordedMessage): object[] =>
  content.map((block) => {
    if (block["type"] === "tool_use")
      return {
        type: "toolRequest",
        id: block["id"],
        toolCall: { status: "success", value: { name: block["name"], arguments: block["input"] } },
      };
    if (block["type"] !== "tool_result") return block;
    const output = block["content"];
    const text = typeof output === "string" ? output : JSON.stringify(output);
    const value = { content: [{ type: "text", text }], isError: false };
    return { type: "toolResponse", id: block["tool_use_id"], toolResult: { status: "success", value } };
  });

let homes = 0;
function placed(): { readonly home: string; readonly path: string; run(sql: string): void } {
  const home = join(root, String(homes++));
  const path = join(home, ".local/share/goose/sessions/sessions.db");
  mkdirSync(join(path, ".."), { recursive: true });
  const run = (sql: string): void => {
    using database = new DatabaseSync(path, { enableForeignKeyConstraints: false });
    database.exec(sql);
  };
  run(TABLES);
  using database = new DatabaseSync(path);
  for (const { name, messages } of CONVERSATIONS) {
    database.prepare("insert into sessions (id, name, working_dir) values (?, ?, ?)").run(name, "Birds", "/work");
    for (const message of messages)
      database
        .prepare(
          "insert into messages (session_id, role, content_json, created_timestamp, metadata_json) values (?, ?, ?, ?, ?)",
        )
        .run(
          name,
          message.role,
          JSON.stringify(blocksOf(message)),
          Math.floor(message.ts / 1_000),
          '{"userVisible":true,"agentVisible":true}',
        );
  }
  return { home, path, run };
}

const CALLS = CONVERSATIONS.find(({ name }) => name.includes("kgih4"))!.name;
const sessionIn = (home: string, id = CALLS) => sessionsIn(goose, home).find((session) => session.id === id)!;
const spoken = async (home: string): Promise<string> =>
  JSON.stringify((await recordsOf(goose, sessionIn(home))).map(({ units }) => units));

describe("goose", () => {
  test("sessions are found, healthy, understood, and imported", async () => {
    const { home } = placed();
    expect(
      sessionsIn(goose, home)
        .map(({ id }) => id)
        .toSorted(),
    ).toEqual(CONVERSATIONS.map(({ name }) => name).toSorted());
    for (const session of sessionsIn(goose, home)) {
      expect(kindsIn(await diagnose(goose, session))).toEqual([]);
      expect(await fix(goose, session, { backups: join(root, "backups") })).toBe(null);
    }
    using door = new Door();
    const { conversations, title } = await readConversations(goose, sessionIn(home), door);
    expect(title).toBe("Birds");
    const roles = conversations[0]!.messages.map(({ role }) => role);
    expect(roles).toEqual(["user", "assistant", "user", "assistant", "user", "assistant"]);
  });

  const rowOf = (words: string): string =>
    `id = (select id from messages where session_id = '${CALLS}' and content_json like '%${words}%' limit 1)`;
  test.each([
    [
      "damaged-row",
      `update messages set content_json = substr(content_json, 1, 50) where ${rowOf("There is one heron")}`,
      "There is",
    ],
    ["damaged-row", `update messages set content_json = '' where ${rowOf("toolResponse")}`, "was lost"],
    ["damaged-row", `update messages set content_json = 'null' where ${rowOf("Look around")}`, "was lost"],
    ["missing-row", `delete from sessions where id = '${CALLS}'`, "There is one heron"],
    ["call-without-result", `delete from messages where ${rowOf("toolResponse")}`, "was lost"],
    ["result-without-call", `delete from messages where ${rowOf("toolRequest")}`, "was lost"],
    [
      "bad-tool-input",
      `update messages set content_json = replace(content_json, '"arguments":{', '"arguments":"x","was":{') where ${rowOf("toolRequest")}`,
      "was lost",
    ],
    ["result-before-call", `update messages set created_timestamp = 9 where ${rowOf("toolResponse")}`, "one heron"],
  ])("%s: %s", async (kind, sql, words) => {
    const { home, run, path } = placed();
    run(sql);
    expect(kindsIn(await diagnose(goose, sessionIn(home)))).toContain(kind);
    const fixed = await fix(goose, sessionIn(home), { backups: join(root, "backups") });
    expect(kindsIn(fixed!.diagnosis)).toEqual([]);
    expect(await spoken(home)).toContain(words);
    expect(await spoken(home)).toContain("There is");
    const bytes = readFileSync(path);
    expect(await fix(goose, sessionIn(home), { backups: join(root, "backups") })).toBe(null);
    expect(readFileSync(path).equals(bytes)).toBe(true);
    // The other sessions are as they were.
    const other = CONVERSATIONS.find(({ name }) => name !== CALLS)!.name;
    expect(kindsIn(await diagnose(goose, sessionIn(home, other)))).toEqual([]);
  });

  test("odd but legal: an unknown role and block, a call without arguments or that failed, an interrupted call", async () => {
    const { home, run } = placed();
    const say = (role: string, content: unknown): void =>
      run(`insert into messages (session_id, role, content_json, created_timestamp, metadata_json)
        values ('${CALLS}', '${role}', '${JSON.stringify(content)}', 1900000000, 'no json')`);
    say("user", [
      { type: "text", text: "go" },
      { type: "hologram", data: null },
    ]);
    say("assistant", [{ type: "toolRequest", id: "a", toolCall: { Ok: { name: "x" } } }]);
    say("user", [{ type: "toolResponse", id: "a", toolResult: { status: "error", error: "no" } }]);
    say("narrator", []);
    say("assistant", [{ type: "toolRequest", id: "b", toolCall: { status: "error", error: "no such tool" } }]);
    say("user", [{ type: "text", text: "go" }]);
    expect(kindsIn(await diagnose(goose, sessionIn(home)))).toEqual([]);
  });

  test("older sessions are lines behind one with the facts", async () => {
    const home = join(root, "lines");
    const path = join(home, ".local/share/goose/sessions/20250101_1.jsonl");
    mkdirSync(join(path, ".."), { recursive: true });
    const { messages } = CONVERSATIONS.find(({ name }) => name === CALLS)!;
    const lines = [
      { working_dir: "/work", description: "Birds", message_count: messages.length },
      ...messages.map((message) => ({ role: message.role, created: 1, content: blocksOf(message) })),
    ].map((line) => JSON.stringify(line));
    writeFileSync(path, `${lines.join("\n")}\n`);
    const session = sessionsIn(goose, home)[0]!;
    expect(kindsIn(await diagnose(goose, session))).toEqual([]);
    writeFileSync(path, `${lines.slice(0, 3).join("\n")}${lines.slice(3).join("\n")}\n`);
    expect(kindsIn(await diagnose(goose, session))).toEqual(["glued-records"]);
    expect(kindsIn((await fix(goose, session, { backups: join(root, "backups") }))!.diagnosis)).toEqual([]);
    expect(readFileSync(path, "utf8")).toBe(`${lines.join("\n")}\n`);
  });
});
