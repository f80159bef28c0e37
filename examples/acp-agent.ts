/**
 * An agent for editors (ACP) whose sessions survive a kill. The agent itself cannot load sessions: `durable` records
 * them, lists them and replays them, and `restore` gives the agent its memory back.
 *
 * Prompts: `write <line>` appends a line to notes.txt, after it has asked. `slow` counts for a while. `continue` goes
 * on with what a kill has cut off. Anything else is repeated. The first argument is the folder for the sessions.
 */
import { appendFileSync } from "node:fs";
import { join } from "node:path";
import { Readable, Writable } from "node:stream";
import { setTimeout as passed } from "node:timers/promises";
import {
  type AgentContext,
  agent,
  methods,
  ndJsonStream,
  type RequestPermissionResponse,
  type SessionUpdate,
  type StopReason,
  type ToolCallUpdate,
} from "@agentclientprotocol/sdk";
import { durable, type InterruptedTurn } from "@holdfast/acp";
import { openStore } from "holdfast";

interface Memory {
  readonly cwd: string;
  /** What the user has said so far: the context of this simple model. */
  readonly heard: string[];
  interrupted: InterruptedTurn | null;
  abort: AbortController;
}
const memories = new Map<string, Memory>();

const store = await openStore(process.argv[2] ?? "./agent-data", { durability: "process" });
const input = Readable.toWeb(process.stdin) as unknown as ReadableStream<Uint8Array>;
const stream = durable(ndJsonStream(Writable.toWeb(process.stdout), input), store, {
  app: "example-agent",
  restore: (sessionId, { cwd, history, interruption }) => {
    const heard = history.flatMap((update) =>
      update.sessionUpdate === "user_message_chunk" ? textIn(update.content) : [],
    );
    memories.set(sessionId, { cwd, heard, interrupted: interruption, abort: new AbortController() });
  },
});

const { closed } = agent({ name: "example-agent" })
  .onRequest(methods.agent.initialize, () => ({ protocolVersion: 1, agentCapabilities: {} }))
  .onRequest(methods.agent.session.new, ({ params }) => {
    const sessionId = crypto.randomUUID();
    memories.set(sessionId, { cwd: params.cwd, heard: [], interrupted: null, abort: new AbortController() });
    return { sessionId };
  })
  .onNotification(methods.agent.session.cancel, ({ params }) => memories.get(params.sessionId)?.abort.abort())
  .onRequest(methods.agent.session.prompt, async ({ params, client }) => {
    const memory = memories.get(params.sessionId);
    if (!memory) throw new Error(`unknown session ${params.sessionId}`);
    const words = params.prompt.flatMap(textIn).join(" ");
    memory.abort = new AbortController();
    const stopReason = await turn(params.sessionId, memory, words, client);
    memory.heard.push(words);
    return { stopReason };
  })
  .connect(stream);
await closed;
await store.close();

async function turn(sessionId: string, memory: Memory, words: string, client: AgentContext): Promise<StopReason> {
  const update = (one: SessionUpdate) => client.notify(methods.client.session.update, { sessionId, update: one });
  const say = (text: string) => update({ sessionUpdate: "agent_message_chunk", content: { type: "text", text } });

  /** Asks, appends, reports. A report is on record when its promise resolves: the start, before the effect. */
  async function write(toolCallId: string, line: string): Promise<StopReason> {
    const toolCall: ToolCallUpdate = { toolCallId, title: `Append "${line}"`, kind: "edit", rawInput: { line } };
    const { outcome } = await client.request<RequestPermissionResponse>(methods.client.session.requestPermission, {
      sessionId,
      toolCall,
      options: [
        { optionId: "yes", name: "Append it", kind: "allow_once" },
        { optionId: "no", name: "Skip", kind: "reject_once" },
      ],
    });
    if (outcome.outcome === "cancelled") return "cancelled";
    if (outcome.optionId !== "yes") {
      await update({ sessionUpdate: "tool_call_update", toolCallId, status: "failed" });
      return "end_turn";
    }
    await update({ sessionUpdate: "tool_call_update", toolCallId, status: "in_progress" });
    appendFileSync(join(memory.cwd, "notes.txt"), `${line}\n`);
    // Time to kill it in.
    if (line.includes("slowly")) await passed(60_000);
    const content = [{ type: "content" as const, content: { type: "text" as const, text: "appended" } }];
    await update({ sessionUpdate: "tool_call_update", toolCallId, status: "completed", content });
    return "end_turn";
  }

  if (words === "continue") {
    const { interrupted } = memory;
    memory.interrupted = null;
    if (!interrupted) await say("Nothing was interrupted.");
    for (const { title, rawInput, state } of interrupted?.calls ?? []) {
      // It did not run, so it is asked again. What may have run is not repeated.
      if (state === "awaiting") return write(crypto.randomUUID(), (rawInput as { line: string }).line);
      await say(`${title} may have run. Look before you repeat it.`);
    }
    return "end_turn";
  }
  if (words === "slow") {
    for (let n = 0; n < 100 && !memory.abort.signal.aborted; n++) {
      await say(`${n} `);
      await passed(20);
    }
    return memory.abort.signal.aborted ? "cancelled" : "end_turn";
  }
  if (words.startsWith("write ")) {
    const toolCallId = crypto.randomUUID();
    const line = words.slice("write ".length);
    await update({
      sessionUpdate: "tool_call",
      toolCallId,
      title: `Append "${line}"`,
      kind: "edit",
      rawInput: { line },
    });
    return write(toolCallId, line);
  }
  await say(`You said "${words}". Before that: ${memory.heard.join(", ") || "nothing"}.`);
  return "end_turn";
}

function textIn(block: { readonly type: string; readonly text?: unknown }): string[] {
  return block.type === "text" ? [String(block.text)] : [];
}
