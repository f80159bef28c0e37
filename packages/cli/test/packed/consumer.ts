/**
 * A program of somebody else's, on the packages as they are installed from npm: packed.test.ts compiles it there as
 * strictly as can be, and runs it.
 */
import { durable } from "@holdfast/adapters/ai-sdk";
import type { Chat, Host, Item } from "@holdfast/cli/host";
import { validateAiSdk } from "@holdfast/testkit";
import { generateText, type LanguageModel, type ModelMessage } from "ai";
import { isHoldfastError, openStore } from "holdfast";
import { assertId } from "holdfast/store";

const model: Extract<LanguageModel, { specificationVersion: "v4" }> = {
  specificationVersion: "v4",
  provider: "nobody",
  modelId: "parrot",
  supportedUrls: {},
  doStream: () => Promise.reject(new Error("this model does not stream")),
  doGenerate: async () => ({
    content: [{ type: "text", text: "Hello." }],
    finishReason: { unified: "stop", raw: "stop" },
    usage: {
      inputTokens: { total: 3, noCache: 3, cacheRead: 0, cacheWrite: 0 },
      outputTokens: { total: 2, text: 2, reasoning: 0 },
    },
    warnings: [],
  }),
};

const store = await openStore("./sessions", { app: "consumer", recordsToolStarts: true });
const session = await store.create<ModelMessage>({ dialect: "ai-sdk" });
assertId(session.id);
const agent = durable(session);
await session.startTurn({ role: "user", content: "Say hello." });
const { kind } = await agent.finish(generateText(agent.wrap({ model })));
await session.close();

const reading = await store.read<ModelMessage>(session.id);
const violations = validateAiSdk([...reading.messages, { role: "user", content: "Thank you." }]);
const missing = await store.read("nobody").catch((error: unknown) => (isHoldfastError(error) ? error.code : "another"));
await store.close();

/** The contract of the host, as a screen of somebody else's would use it. */
export async function firstWords(host: Host, id: string): Promise<string> {
  const chat: Chat = await host.open(id);
  const first: Item | undefined = chat.state.items[0];
  return first?.kind === "prompt" ? first.text : "";
}

console.log(JSON.stringify({ kind, roles: reading.messages.map(({ role }) => role), violations, missing }));
