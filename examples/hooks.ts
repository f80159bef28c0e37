// An agent loop as many programs have it, adopted with hooks: one call wherever it used to push to its array.
// Start it, `kill -9` it while a tool runs, and start it again: node --conditions=holdfast-source examples/hooks.ts
import { setTimeout as sleep } from "node:timers/promises";
import { guard, openStore } from "holdfast";
import { ask, type Block, callsIn, type Message } from "./model.ts";

const tools: Record<string, (signal: AbortSignal) => Promise<string>> = {
  read_notes: async () => "Release on Friday.",
  send_mail: async (signal) => {
    console.log(`  the mail is on its way (kill -9 ${process.pid} now, and start me again)`);
    await sleep(10_000, undefined, { signal });
    return "Sent.";
  },
  post_summary: async () => "Posted.",
};

// Every tool starts through `turn.tool`, so a call without a recorded start is known never to have run.
const store = await openStore("./agent-data", { app: "hooks", recordsToolStarts: true });
const session =
  (await store.resumeLatest<Message>({ cwd: ".", app: "hooks" })) ??
  (await store.create<Message>({ dialect: "anthropic", cwd: "." }));
// SIGTERM and SIGHUP are recorded before they end the process. Nothing is lost without it, but then they look like a
// SIGKILL.
guard(session);

// What was in flight when the last process died. Null if its turn was completed, or there was none.
const found = session.interruption;
if (found) {
  console.log(`turn ${found.turn} was cut off (${found.how.kind})`);
  for (const call of found.calls) console.log(`  ${call.name}: ${call.state}`);
  if (found.draft) console.log(`  it was saying: ${found.draft.text}`);
}

// `resumeTurn` closes what was left open, and says so to the model: which calls never started, and which may have taken
// effect. A turn that has its answer is not resumed: there is nothing left to ask. `startTurn` records its end.
const turn =
  found && !found.answered
    ? await session.resumeTurn()
    : await session.startTurn({ role: "user", content: "Tell everybody about the release." });

for (;;) {
  // The loop's own array is gone: these messages are what the provider accepts, whatever happened.
  const { messages, draft } = turn.request();
  const answer = await ask(messages, (text) => draft.push({ text }), turn.signal);
  const calls = callsIn(answer);
  // Was messages.push(answer). When it resolves, the calls are on disk, and only then may a tool run.
  // An answer without calls is the last one: `end` ends the turn in the same write, so that no crash comes in between.
  await draft.commit(answer, { usage: { outputTokens: 42 }, end: calls.length === 0 });
  console.log(`model: ${(answer.content[0] as Block).text}`);
  if (calls.length === 0) break;
  const results: Block[] = [];
  for (const { id, name } of calls) {
    console.log(`tool: ${name}`);
    // Records the start, runs the tool, records its outcome. What the tool throws is an outcome too.
    const { value, error } = await turn.tool(id, tools[name]!);
    const failed = error === undefined ? {} : { is_error: true };
    results.push({ type: "tool_result", tool_use_id: id, content: value ?? String(error), ...failed });
  }
  // Was messages.push(results).
  await turn.append({ role: "user", content: results });
}
await store.close();
console.log("done");
