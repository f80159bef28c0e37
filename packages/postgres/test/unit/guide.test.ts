import { readFileSync } from "node:fs";
import { newId } from "holdfast";
import pg from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { grants, openPostgresStore, openStore } from "../../src/index.ts";
import { type Server, startServer } from "../server/server.ts";

const guide = readFileSync(new URL("../../../../docs/guides/many-machines.md", import.meta.url), "utf8");

let server: Server;

beforeAll(async () => {
  server = await startServer(["fsync=off"]);
});
afterAll(() => server.stop());

test("docs/guides/many-machines.md: its queries run, as the reader that it describes, and say what they should", async () => {
  const admin = new pg.Client({ connectionString: server.url });
  const reader = new pg.Client({ connectionString: server.url.replace("postgres:secret", "dashboard:secret") });
  try {
    const store = await openPostgresStore(server.url);
    const journal = await store.create(newId(), [], { app: "the guide" });
    await admin.connect();
    await admin.query("CREATE ROLE dashboard LOGIN PASSWORD 'secret'");
    for (const statement of grants("holdfast", { reader: "dashboard" })) await admin.query(statement);
    await reader.connect();
    const [, sql = ""] = /```sql\n([^`]*)```/.exec(guide) ?? [];
    const queries = sql.split(/;\n/).filter((text) => text.trim() !== "");
    const answers: Record<string, unknown>[][] = [];
    for (const text of queries) answers.push((await reader.query(text)).rows);
    expect(answers).toHaveLength(7);
    const [writers, states, abandoned, claims, months] = answers;
    expect(writers).toMatchObject([{ id: journal.id, app: "the guide", lives: true }]);
    expect(states).toMatchObject([{ count: "1" }]);
    expect(abandoned).toEqual([]);
    expect(claims).toEqual([]);
    expect(months!.map(({ relname }) => relname)).toContain("lines_other");
    await store.close();
  } finally {
    await reader.end();
    await admin.end();
  }
});

test("a pool that the application has already: used, and left open", async () => {
  const pool = new pg.Pool({ connectionString: server.url, max: 2 });
  pool.on("error", () => undefined);
  try {
    const store = await openStore(pool, { directUrl: server.url, schema: "mine" });
    const session = await store.create({ dialect: "ai-sdk" });
    await (await session.startTurn({ role: "user", content: "hello" })).end();
    await store.close();
    const { rows } = await pool.query("SELECT summary ->> 'turns' AS turns FROM mine.catalogue");
    expect(rows).toEqual([{ turns: "1" }]);
  } finally {
    await pool.end();
  }
});
