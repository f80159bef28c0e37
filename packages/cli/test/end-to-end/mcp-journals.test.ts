import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import { accountOf, openStore } from "holdfast";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Journal, POLICY, writeJournals } from "../../../holdfast/test/journals/journals.ts";
import { lives } from "../../../holdfast/test/journals/lives.ts";
import { bin, temporaryHome } from "../command.ts";

/** The killed sessions that every surface is held to, as `holdfast mcp serve` tells another agent of them. */

const home = temporaryHome();
let journals: readonly Journal[] = [];
let client: Client;
beforeAll(async () => {
  journals = await writeJournals(home.store, "holdfast", home.work);
  client = new Client({ name: "test", version: "1" });
  const env = { ...home.env, PATH: process.env["PATH"]!, HOLDFAST_CONFIG: "" };
  const transport = new StdioClientTransport({
    ...{ command: process.execPath, args: [bin, "mcp", "serve"], env, cwd: home.work, stderr: "pipe" },
  });
  await client.connect(transport as unknown as Transport);
});
afterAll(async () => {
  await client.close();
  home[Symbol.dispose]();
});

async function call(name: string, input: Record<string, unknown>): Promise<string> {
  const { content } = await client.callTool({ name, arguments: input });
  return (content as { text: string }[])[0]!.text;
}

const names = lives().map(({ name }) => name);

test.each(names)("%s: read, it is told in the words of the account", async (name) => {
  const { id, expected } = journals.find((one) => one.name === name)!;
  await using store = await openStore(home.store);
  const { turn, calls, words } = accountOf(await store.read(id), { app: "holdfast", policy: POLICY });
  const told = await call("read_session", { session: id });
  expect(told.includes(`Turn ${turn}: ${words.status}.`)).toBe(expected.state !== "idle");
  for (const { words } of calls) expect(told).toContain(`: ${words}\n`);
  expect(calls.map((one) => one.id).toSorted()).toEqual(Object.keys(expected.calls).toSorted());
  // The other agent cannot finish it.
  expect(told).not.toContain("--finish");
});

test.each([...new Set(lives().map(({ expected }) => expected.state))])("listed as %s", async (state) => {
  const listed = await call("list_sessions", { status: state, limit: 100 });
  for (const { id, name, expected } of journals) {
    const status = expected.state === "idle" && (expected.queued ?? 0) > 0 ? "queued" : expected.state;
    // A session without a turn is not listed.
    expect(listed.includes(id), name).toBe(status === state && name !== "created");
  }
});
