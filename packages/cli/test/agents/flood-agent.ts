import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { createInterface } from "node:readline";

/**
 * An agent without an SDK, for tests and measurements of what carries its messages. A prompt says how many updates to
 * send: `{"text":"1000"}`, or `1000 mixed` for one tool call in a hundred, with reports on it. It writes as fast as its
 * reader reads, and says in a file how far it came. A `_tick` is answered with one update at once.
 */
const [progress = "", text = "word "] = process.argv.slice(2);

const send = (message: object): boolean => process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
const update = (sessionId: string, n: number, isMixed = false): boolean =>
  send({ method: "session/update", params: { sessionId, update: (isMixed ? callUpdate(n) : null) ?? chunk(n) } });

const chunk = (n: number): object => ({
  sessionUpdate: "agent_message_chunk",
  content: { type: "text", text: `${n} ${text}` },
});

function callUpdate(n: number): object | null {
  const toolCallId = `call-${Math.floor(n / 100)}`;
  if (n % 100 === 0) return { sessionUpdate: "tool_call", toolCallId, title: "Build", status: "pending" };
  if (n % 10 !== 9) return null;
  return { sessionUpdate: "tool_call_update", toolCallId, status: n % 100 === 99 ? "completed" : "in_progress" };
}

async function flood(sessionId: string, count: number, isMixed: boolean): Promise<void> {
  for (let n = 0; n < count; n++) {
    if (update(sessionId, n, isMixed)) continue;
    if (progress !== "") writeFileSync(progress, String(n + 1));
    await once(process.stdout, "drain");
  }
  if (progress !== "") writeFileSync(progress, String(count));
}

for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params = {} } = JSON.parse(line);
  if (method === "initialize") send({ id, result: { protocolVersion: 1, agentCapabilities: {} } });
  else if (method === "session/new") send({ id, result: { sessionId: `flood-${process.pid}-${id}` } });
  else if (method === "_tick") update(params.sessionId, params.n);
  else if (method === "session/prompt") {
    const [count, kind] = params.prompt.at(-1).text.split(" ");
    void flood(params.sessionId, Number(count), kind === "mixed").then(() =>
      send({ id, result: { stopReason: "end_turn" } }),
    );
  } else if (id !== undefined) send({ id, error: { code: -32601, message: "unknown method" } });
}
