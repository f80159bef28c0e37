// Answers that a provider makes in the background, with OpenAI's own client: the id of each is on disk as soon as the
// request was accepted. Start it, `kill -9` it while it waits, and start it again: the answer is fetched, and not paid
// for twice. With a key of yours, or with background-model.ts on this machine:
// OPENAI_BASE_URL=http://127.0.0.1:4010/v1 OPENAI_API_KEY=none node --conditions=holdfast-source examples/background.ts
import { setTimeout as sleep } from "node:timers/promises";
import { type AcceptedRequest, type Draft, openStore, type Store, type Turn } from "holdfast";
import OpenAI from "openai";
import type { Response, ResponseInputItem, Tool } from "openai/resources/responses/responses";

type Message = ResponseInputItem;

/** Reasoning comes encrypted, so the conversation does not depend on what OpenAI stores. */
const include: OpenAI.Responses.ResponseIncludable[] = ["reasoning.encrypted_content"];
const parameters = { type: "object", properties: {}, required: [], additionalProperties: false };
const look: Tool = { type: "function", name: "look", description: "Looks at the sky.", strict: true, parameters };

/** The finished response to the turn's next request, and the draft that it belongs to. */
async function answer(client: OpenAI, turn: Turn<Message>): Promise<{ draft: Draft<Message>; response: Response }> {
  let { messages, draft, accepted } = turn.request();
  let response = accepted && (await fetched(client, accepted));
  if (accepted && !response) ({ messages, draft, accepted } = turn.request()); // It is gone: ask again.
  if (!response) {
    const asked = { model: "gpt-5.2", input: messages, tools: [look], include, background: true, store: true };
    // The client would repeat a request whose answer was lost on the way, and that would be paid for twice.
    response = await client.responses.create({ ...asked, stream: false }, { maxRetries: 0, signal: turn.signal });
    await draft.accepted({ id: response.id }); // From here on, a crash costs nothing.
    console.log(`${response.id} was accepted (kill -9 ${process.pid} now, and start me again)`);
  }
  while (isPending(response)) {
    await sleep(Number(process.env["POLL_MS"] ?? 2000), undefined, { signal: turn.signal });
    response = await client.responses.retrieve(response.id, { include }, { signal: turn.signal });
  }
  if (response.status === "completed") return { draft, response };
  await draft.discard(`the response is ${response.status}`);
  throw new Error(`${response.id} is ${response.status}: ${response.error?.message ?? "no reason was given"}`);
}

/** Null if there will never be an answer: it was not kept so long, or it failed. */
async function fetched(client: OpenAI, { handle }: AcceptedRequest): Promise<Response | null> {
  const { id } = handle as { readonly id: string };
  try {
    const found = await client.responses.retrieve(id, { include });
    console.log(`${id} is ${found.status}: it is fetched, and not asked for again`);
    return isPending(found) || found.status === "completed" ? found : null;
  } catch (error) {
    if (error instanceof OpenAI.NotFoundError) return null;
    throw error; // A crash or a broken line now costs nothing either: the id is still there.
  }
}

function isPending({ status }: Response): boolean {
  return status === "queued" || status === "in_progress";
}

/** One turn, from its start or from where an earlier process died. */
export async function runAgent(store: Store, client: OpenAI): Promise<string> {
  const session =
    (await store.resumeLatest<Message>({ app: "background" })) ??
    (await store.create<Message>({ dialect: "openai-responses" }));
  const found = session.interruption;
  if (!found && session.messages.length > 0) return "done already";
  const turn = found
    ? await session.resumeTurn()
    : await session.startTurn({ role: "user", content: "Are there many stars tonight?" });
  for (;;) {
    const { draft, response } = await answer(client, turn);
    const calls = response.output.filter((item) => item.type === "function_call");
    const { input_tokens = 0, output_tokens = 0 } = response.usage ?? {};
    const usage = { inputTokens: input_tokens, outputTokens: output_tokens };
    await draft.commit(response.output as Message[], { usage, end: calls.length === 0 });
    if (calls.length === 0) return response.output_text;
    for (const { call_id } of calls) await turn.tool(call_id, () => "Stars everywhere.", { replay: "safe" });
  }
}

if (import.meta.main) {
  await using store = await openStore("./agent-data", { app: "background", recordsToolStarts: true });
  console.log(await runAgent(store, new OpenAI()));
}
