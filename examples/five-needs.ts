// Five reports of users of other agents, each answered in a few lines, and each asserted.
// Start it: node --conditions=holdfast-source examples/five-needs.ts
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { guard, openStore } from "holdfast";
import type { Message } from "./model.ts";

const store = await openStore("./agent-data", { app: "five-needs", recordsToolStarts: true });
const user = (content: string): Message => ({ role: "user", content });
const answer = (text: string): Message => ({ role: "assistant", content: [{ type: "text", text }] });
const call = (id: string): Message => ({
  role: "assistant",
  content: [{ type: "tool_use", id, name: "sh", input: {} }],
});
const create = (title: string) => store.create<Message>({ dialect: "anthropic", title, cwd: "." });

// What an earlier run of this program was killed in: a list reads no transcripts, and knows.
for (const { id, title } of (await store.list({ cwd: ".", app: "five-needs", status: "interrupted" })).sessions) {
  const { interruption: found } = await store.read<Message>(id);
  if (found?.how.kind === "killed") console.log(`found: ${title}, killed: ${found.draft?.text ?? "nothing streamed"}`);
}

// 1. "Let me save the trajectory in mid-session" (Antigravity SDK #68): it is saved, and `flush` waits for the platter.
{
  const session = await create("save now");
  await session.sync([user("Hello."), answer("Hello!"), user("What is new?")]);
  await session.flush();
  assert.equal((await store.read(session.id)).messages.length, 3); // What any other process sees.
  console.log("1 saved in mid-session");
}

// 2. "Autosave in mid-turn, and on SIGHUP" (Reasonix #3772): there is nothing to call. Streamed words are at risk for
// 200 ms.
{
  const session = await create("autosave");
  using _ = guard(session); // SIGTERM and SIGHUP: also what the last 200 ms brought.
  const turn = await session.startTurn(user("Tell me a story."));
  turn.request().draft.push({ text: "Once upon a time" });
  await sleep(400);
  assert.equal((await store.read(session.id)).holder?.pid, process.pid);
  console.log(`2 saved in mid-turn (kill -9 ${process.pid} now, and start me again)`);
  await sleep(2_000);
  await turn.abort({ by: "user" });
  assert.equal(session.interruption?.draft?.text, "Once upon a time");
}

// 3. "Cancel keeps what the iteration produced" (goose #7827): the messages, the words, and what a tool came to
// afterwards.
{
  const session = await create("cancel");
  const turn = await session.startTurn(user("Build it."));
  await turn.append(call("c1"));
  const { promise: running, resolve: runs } = Promise.withResolvers<void>();
  const building = turn.tool("c1", async (signal) => {
    runs();
    return `stopped: ${await aborted(signal)}`;
  });
  await running;
  await turn.abort({ by: "user", reason: "Ctrl+C" });
  assert.deepEqual(await building, { value: "stopped: true" });
  assert.match(JSON.stringify(session.messages), /"tool_result".*stopped: true/);
  assert.deepEqual(session.interruption?.how, { kind: "aborted", by: "user", reason: "Ctrl+C" });
  console.log("3 cancelled, and nothing lost");
}

// 4. "Do not clobber metadata" (goose #7785): a patch changes what it names. Nothing ever replaces a conversation on
// interrupt.
{
  const session = await create("metadata");
  const turn = await session.startTurn(user("Hi."), { id: "m1", metadata: { rating: 5, pinned: true } });
  await session.patch("m1", { pinned: null, seen: true });
  await turn.abort({ by: "user" });
  assert.deepEqual(session.entries[0]?.metadata, { rating: 5, seen: true });
  console.log("4 metadata is patched");
}

// 5. "Hooks per message, and swapping sessions without writing twice" (zot): a turn belongs to its session, shown or
// not.
{
  const [here, there] = [await create("here"), await create("there")];
  const turn = await here.startTurn(user("Think hard."));
  await there.startTurn(user("Something else.")); // The user has switched; the first turn goes on.
  await turn.append(answer("42"), { id: "a1", usage: { outputTokens: 1 } });
  await turn.append(answer("42"), { id: "a1", usage: { outputTokens: 1 } }); // A retry: not written twice.
  assert.equal(store.live(here.id), here); // The way back.
  const kinds: string[] = [];
  for await (const { kind } of here.follow()) if (kinds.push(kind) && kind === "usage") break;
  assert.deepEqual(kinds.slice(-4), ["turn.started", "message", "message", "usage"]);
  assert.deepEqual([here.entries.length, here.usage.outputTokens, there.entries.length], [2, 1, 1]);
  console.log("5 hooks, usage and a swap");
}
await store.close();

function aborted(signal: AbortSignal): Promise<boolean> {
  return new Promise((resolve) => signal.addEventListener("abort", () => resolve(true), { once: true }));
}
