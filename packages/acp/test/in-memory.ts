import { setImmediate } from "node:timers/promises";
import { type ClientContext, client, methods, type SessionUpdate } from "@agentclientprotocol/sdk";
import type { MessageStream } from "../src/index.ts";

// biome-ignore lint/suspicious/noExplicitAny: messages of any version of the SDK.
type Any = any;

/**
 * Two ends of one connection. `sent` has each message that the client's end received, as it came. `isReal`: a message
 * takes a turn of the event loop, as on a real stream.
 */
export function pipe(isReal = false): {
  readonly agent: MessageStream<Any>;
  readonly client: MessageStream<Any>;
  readonly sent: Any[];
} {
  const sent: Any[] = [];
  const up = new TransformStream<Any, Any>();
  const down = new TransformStream<Any, Any>({
    transform: async (message, controller) => {
      if (isReal) await setImmediate();
      sent.push(message);
      controller.enqueue(message);
    },
  });
  return {
    sent,
    agent: { readable: up.readable, writable: down.writable },
    client: { readable: down.readable, writable: up.writable },
  };
}

export interface TestClient {
  readonly agent: ClientContext;
  readonly capabilities: Any;
  readonly updates: SessionUpdate[];
  readonly asked: Any[];
}

/** The SDK's client. `answer`: what the person says; null leaves the question open. */
export async function connectClient(
  stream: MessageStream<Any>,
  answer: () => string | null = () => "yes",
): Promise<TestClient> {
  const updates: SessionUpdate[] = [];
  const asked: Any[] = [];
  const connection = client({ name: "test" })
    .onRequest(methods.client.session.requestPermission, ({ params }) => {
      asked.push(params);
      const optionId = answer();
      return optionId === null ? new Promise<never>(() => undefined) : { outcome: { outcome: "selected", optionId } };
    })
    .onRequest(methods.client.fs.readTextFile, () => ({ content: "TOP-SECRET-FILE" }))
    .onNotification(methods.client.session.update, ({ params }) => void updates.push(params.update))
    .connect(stream);
  connection.closed.catch(() => undefined);
  const capabilities = await connection.agent.request(methods.agent.initialize, {
    protocolVersion: 1,
    clientCapabilities: {},
  });
  return { agent: connection.agent, capabilities, updates, asked };
}

/** What an editor shows. */
export function shown(updates: readonly SessionUpdate[]): string[] {
  return updates.map((update: Any) => {
    const text = update.content?.text ?? update.content?.map((one: Any) => one.content.text).join("|") ?? "";
    return `${update.sessionUpdate} ${update.title ?? ""}${update.status ? ` ${update.status}:` : ""} ${text}`
      .replaceAll(/ +/g, " ")
      .trim();
  });
}
