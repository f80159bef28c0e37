import { spawn } from "node:child_process";
import { appendFileSync, existsSync, writeFileSync } from "node:fs";
import { Readable, Writable } from "node:stream";
import { setTimeout as passed } from "node:timers/promises";
import { agent, methods, ndJsonStream, type RequestPermissionResponse } from "@agentclientprotocol/sdk/unstable";

/**
 * An agent on the SDK. Its arguments say what it can: `load`, `resume`, `fork`, or nothing, as most agents that were
 * made from the SDK's example. It answers with what it was asked, so that tests see what reaches it. Prompts: `slow`
 * streams until it is cancelled, `slow 200` until it has said 200 pieces; `tool` asks for permission and then runs a
 * tool (if that is refused, its turn ends when there is no file `.hold`), `die` ends the process in the middle of a
 * call, `run` starts a process in a session of its own and waits for it, `where` writes down with what the session was
 * opened, `linger` starts a process that does not want to end, writes down its own pid, and ends.
 */
const [can = "nothing", memory = ""] = process.argv.slice(2);
const { session } = methods.agent;
const started = `${process.pid}`;
/** The sessions that are open, and with what. */
const known = new Map<string, object>();
const opened = (sessionId: string, params: object): { sessionId: string } => {
  known.set(sessionId, params);
  return { sessionId };
};
let serial = 0;
const aborts = new Map<string, AbortController>();

const connection = agent({ name: "plain" })
  .onRequest(methods.agent.initialize, () => ({
    protocolVersion: 1,
    agentCapabilities: {
      loadSession: can === "load",
      ...(can === "resume" || can === "fork" ? { sessionCapabilities: { [can]: {} } } : {}),
    },
    agentInfo: { name: "plain", version: "1.0.0" },
    _meta: { "example.com/big": 1 },
  }))
  .onRequest(session.new, ({ params }) => {
    serial += 1;
    return opened(`plain-${started}-${serial}`, params);
  })
  .onRequest(session.load, async ({ params, client }) => {
    opened(params.sessionId, params);
    // A replay that loses things, as some do.
    const content = { type: "text" as const, text: "(native replay)" };
    await client.notify(methods.client.session.update, {
      sessionId: params.sessionId,
      update: { sessionUpdate: "agent_message_chunk", content },
    });
    return {};
  })
  .onRequest(session.resume, ({ params }) => {
    opened(params.sessionId, params);
    return {};
  })
  .onRequest(session.fork, ({ params }) => {
    if (!known.has(params.sessionId)) throw new Error(`unknown session ${params.sessionId}`);
    serial += 1;
    return opened(`fork-${started}-${serial}`, params);
  })
  .onNotification(session.cancel, ({ params }) => aborts.get(params.sessionId)?.abort())
  .onRequest(session.prompt, async ({ params, client }) => {
    const { sessionId, prompt } = params;
    if (!known.has(sessionId)) throw new Error(`unknown session ${sessionId}`);
    const abort = new AbortController();
    aborts.set(sessionId, abort);
    const update = (one: Parameters<typeof client.notify>[1]) =>
      client.notify(methods.client.session.update, { sessionId, update: one } as never);
    const say = (text: string) => update({ sessionUpdate: "agent_message_chunk", content: { type: "text", text } });
    const asked = prompt.map((block) => (block.type === "text" ? block.text : `(${block.type})`)).join("|");
    const last = prompt.at(-1);
    const words = last?.type === "text" ? last.text : "";
    if (words.startsWith("slow")) {
      const pieces = Number(words.slice("slow ".length)) || Number.POSITIVE_INFINITY;
      for (let n = 0; n < pieces && !abort.signal.aborted; n++) {
        await say(`piece ${n} `);
        await passed(20);
      }
      return { stopReason: abort.signal.aborted ? "cancelled" : "end_turn" };
    }
    if (words === "where") {
      writeFileSync(`${memory}.where`, JSON.stringify(known.get(sessionId)));
      return { stopReason: "end_turn" };
    }
    if (words === "linger") {
      const child = spawn("/bin/sh", ["-c", "trap '' TERM; echo ready; sleep 300; true", `tool of ${memory}`], {
        detached: true,
        stdio: ["ignore", "pipe", "ignore"],
      });
      child.stdout.once("data", () => {
        appendFileSync(`${memory}.left`, `${process.pid}\n`);
        process.exit(7);
      });
      return new Promise<never>(() => undefined);
    }
    if (words === "run") {
      const toolCallId = `call-${Date.now()}`;
      await update({ sessionUpdate: "tool_call", toolCallId, title: "Run a command", status: "in_progress" });
      const child = spawn("/bin/sh", ["-c", "sleep 300; true", `tool of ${memory}`], {
        detached: true,
        stdio: "ignore",
      });
      await new Promise((resolve) => child.once("exit", resolve));
      await update({ sessionUpdate: "tool_call_update", toolCallId, status: "completed" });
    }
    if (words === "tool" || words === "die") {
      const toolCallId = `call-${Date.now()}`;
      const call = { toolCallId, title: "Append a line", kind: "edit" as const, rawInput: { line: "effect" } };
      await update({ sessionUpdate: "tool_call", ...call, status: "pending" });
      const { outcome } = await client.request<RequestPermissionResponse>(methods.client.session.requestPermission, {
        sessionId,
        toolCall: call,
        options: [{ optionId: "yes", name: "Yes", kind: "allow_once" as const }],
      });
      if (outcome.outcome !== "selected") {
        while (existsSync(`${memory}.hold`)) await passed(5);
        return { stopReason: "cancelled" };
      }
      await update({ sessionUpdate: "tool_call_update", toolCallId, status: "in_progress" });
      if (memory !== "") appendFileSync(memory, "effect\n");
      if (words === "die") {
        await passed(50);
        process.exit(7);
      }
      const content = [{ type: "content" as const, content: { type: "text" as const, text: "one line added" } }];
      await update({ sessionUpdate: "tool_call_update", toolCallId, status: "completed", content });
    }
    await say(`I was asked: ${asked}`);
    return { stopReason: "end_turn" };
  })
  .connect(
    ndJsonStream(
      Writable.toWeb(process.stdout),
      Readable.toWeb(process.stdin) as unknown as ReadableStream<Uint8Array>,
    ),
  );
await connection.closed;
