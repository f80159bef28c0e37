import { agent, methods, type SessionUpdate } from "@agentclientprotocol/sdk";
import { type Account, accountOf, openStore, type Store } from "holdfast";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Journal, writeJournals } from "../../../../holdfast/test/journals/journals.ts";
import { lives } from "../../../../holdfast/test/journals/lives.ts";
import { place } from "../../../../holdfast/test/place.ts";
import { durable, type RestoredSession } from "../../../src/index.ts";
import { AGENT, agentOf, Library, SESSION } from "../../../src/record/library.ts";
import { UNAPPROVED, unapprovedFacts } from "../../../src/record/unapproved-calls.ts";
import { connectClient, pipe, shown } from "../../in-memory.ts";
import { rawEditor } from "../../wrapped.ts";

/** The killed sessions that every surface is held to, as durable agents, wrapped ones and their editors get them. */

const folder = place();
const COMMAND = ["writer"];
let journals: readonly Journal[] = [];
let store: Store;
beforeAll(async () => {
  const labels = { [AGENT]: agentOf(COMMAND), [SESSION]: "<name>" };
  journals = await writeJournals(folder.path, "writer", folder.path, { dialect: "acp", labels });
  // What an agent asks for, the recorder cannot promise.
  store = await openStore(folder.path, { recordsToolStarts: true });
});
afterAll(async () => {
  await store.close();
  folder[Symbol.dispose]();
});

/** The account, which says what the table says. */
async function accountIn(name: string): Promise<Account> {
  const { id, expected } = journals.find((one) => one.name === name)!;
  const reading = await store.read(id);
  const facts = unapprovedFacts(reading.attributes.notes[UNAPPROVED]);
  const account = accountOf(reading, { policy: { facts } });
  const states = Object.entries(expected.calls).map(([call, [state]]) => [call, state]);
  expect([account.state, account.calls.map(({ id, state }) => [id, state])]).toEqual([expected.state, states]);
  return account;
}

// A fork has another name.
const names = lives().flatMap(({ name }) => (name.startsWith("forked") ? [] : [name]));

test.each(names)("%s: a durable agent gets what the account says, and its editor is shown that", async (name) => {
  const { calls, state } = await accountIn(name);
  const ends = pipe();
  const restored: RestoredSession[] = [];
  const stream = durable(ends.agent, store, { app: "writer", restore: (_, given) => void restored.push(given) });
  agent({ name: "writer" })
    .onRequest(methods.agent.initialize, () => ({ protocolVersion: 1, agentCapabilities: {} }))
    .connect(stream)
    .closed.catch(() => undefined);
  const client = await connectClient(ends.client);
  await client.agent.request(methods.agent.session.load, { sessionId: name, cwd: folder.path, mcpServers: [] });
  const { interruption } = restored[0]!;
  const told = calls.map(({ id, name, input, state, words }) => ({
    ...{ toolCallId: id, title: name, rawInput: input, state, words },
  }));
  if (state === "idle" || state === "stopped") expect(interruption).toBeNull();
  else expect(interruption!.calls).toMatchObject(told);
  expectShown(client.updates, calls);
  await client.agent.request(methods.agent.session.close, { sessionId: name });
});

test.each(names)("%s: the editor of a wrapped agent is told in the words of the account", async (name) => {
  const { calls, state, words } = await accountIn(name);
  const library = new Library(store, COMMAND);
  await using editor = await rawEditor({ can: { loadSession: true } }, { store, library });
  await editor.ask("session/load", { sessionId: name, cwd: folder.path, mcpServers: [] });
  const updates = editor.seen.flatMap(({ method, params }) => (method === "session/update" ? [params.update] : []));
  const lines = shown(updates).join("\n");
  const isTold = state === "interrupted" || calls.length > 0;
  expect([lines.includes(`The last turn: ${words.status}.`), lines]).toEqual([isTold, lines]);
  for (const call of calls) expect(lines).toContain(`\nlook: ${call.words}.`);
  expectShown(updates, calls);
});

/** The calls that were cut off are shown as failed, with how far they got. Before them come those of earlier turns. */
function expectShown(updates: readonly SessionUpdate[], calls: Account["calls"]): void {
  const failed = shown(updates).flatMap((line) => /Interrupted\. .*/.exec(line)?.[0] ?? []);
  const words = calls.map((call) => `Interrupted. ${call.words.charAt(0).toUpperCase()}${call.words.slice(1)}.`);
  expect(failed.slice(failed.length - words.length)).toEqual(words);
}
