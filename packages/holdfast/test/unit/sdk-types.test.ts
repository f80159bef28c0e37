import type {
  PromptRequest,
  RequestPermissionRequest,
  SessionNotification,
  SessionUpdate,
} from "@agentclientprotocol/sdk";
import type { Message, MessageCreateParams, MessageParam } from "@anthropic-ai/sdk/resources/messages";
import type { Content, GenerateContentParameters, GenerateContentResponse } from "@google/genai";
import type { ModelMessage } from "ai";
import type { ChatCompletionMessage, ChatCompletionMessageParam } from "openai/resources/chat/completions";
import type { ResponseInputItem, ResponseOutputItem } from "openai/resources/responses/responses";
import { expect, expectTypeOf, test } from "vitest";
import { type DialectMessages, openStore, type Reading, type Session, type Store } from "../../src/index.ts";

// The compiler checks this file against the real SDKs (`npm run build`). The tests only show that it all runs, too.

/** Compiles only if each type is assignable to the other. */
function fitBothWays<A extends B, B extends C, C = A>(): void {}

/** Compiles only if every given type may be recorded in the dialect. */
function goesInto<M, _Given extends M>(): void {}

test("the SDKs' own message types go in and come out of a session without a cast", () => {
  fitBothWays<MessageParam, DialectMessages["anthropic"]>();
  fitBothWays<ModelMessage, DialectMessages["ai-sdk"]>();
  fitBothWays<ChatCompletionMessageParam, DialectMessages["openai-chat"]>();
  fitBothWays<ResponseInputItem, DialectMessages["openai-responses"]>();
  fitBothWays<Content, DialectMessages["gemini"]>();
  fitBothWays<SessionUpdate, Extract<DialectMessages["acp"], { sessionUpdate: unknown }>>();
  // What a model returns, and the other messages of ACP, can be recorded as they are.
  goesInto<DialectMessages["anthropic"], Message>();
  goesInto<DialectMessages["openai-chat"], ChatCompletionMessage>();
  goesInto<DialectMessages["openai-responses"], ResponseOutputItem>();
  goesInto<DialectMessages["gemini"], NonNullable<NonNullable<GenerateContentResponse["candidates"]>[0]["content"]>>();
  goesInto<DialectMessages["acp"], SessionUpdate | SessionNotification | PromptRequest | RequestPermissionRequest>();
  // @ts-expect-error `fitBothWays` refuses a type that comes out wider than it went in
  fitBothWays<"user", string>();
  // @ts-expect-error and one that cannot go in
  fitBothWays<string, "user">();
  expect.assertions(0);
});

test("a conversation of a named dialect is a request of the SDK as it is", async () => {
  await using store = await openStore("memory:");
  const question: MessageParam = { role: "user", content: "how many?" };
  const session = await store.create({ dialect: "anthropic" });
  const turn = await session.startTurn(question);
  const request: Pick<MessageCreateParams, "messages"> = { messages: turn.request().messages };
  expect(request.messages).toEqual([question]);
  const answer: Message["content"] = [{ type: "text", text: "seven", citations: null }];
  await turn.append({ role: "assistant", content: answer }, { end: true });
  const shown: MessageParam[] = [...session.messages];
  expect(shown).toEqual([question, { role: "assistant", content: answer }]);

  const gemini = await store.create({ dialect: "gemini" });
  const prompt: Content = { role: "user", parts: [{ text: "how many?" }] };
  const contents: GenerateContentParameters["contents"] = (await gemini.startTurn(prompt)).request().messages;
  expect(contents).toEqual([prompt]);

  const acp = await store.create({ dialect: "acp" });
  const asked: PromptRequest = { sessionId: "s", prompt: [{ type: "text", text: "how many?" }] };
  await acp.startTurn(asked);
  const replayed: SessionUpdate[] = [];
  for (const message of acp.messages) if ("sessionUpdate" in message) replayed.push(message);
  expect(replayed).toEqual([{ sessionUpdate: "user_message_chunk", content: { type: "text", text: "how many?" } }]);
});

test("an SDK's own type can be named instead, and its parts are checked", async () => {
  await using store = await openStore("memory:");
  const session = await store.create<ModelMessage>({ dialect: "ai-sdk" });
  const turn = await session.startTurn({ role: "user", content: [{ type: "text", text: "how many?" }] });
  // @ts-expect-error a part of another SDK
  await expect(turn.append({ role: "assistant", content: [{ type: "tool_use" }] })).rejects.toThrow("another dialect");
  const messages: ModelMessage[] = [...session.messages];
  expect(messages).toHaveLength(1);
});

/** Never runs: what the compiler infers, and what it refuses. */
async function inferred(store: Store, id: string): Promise<void> {
  expectTypeOf(await store.create({ dialect: "anthropic" })).toEqualTypeOf<Session<DialectMessages["anthropic"]>>();
  expectTypeOf(await store.resume(id, { dialect: "gemini" })).toEqualTypeOf<Session<DialectMessages["gemini"]>>();
  expectTypeOf(await store.resumeLatest({}, { dialect: "acp" })).toEqualTypeOf<Session<
    DialectMessages["acp"]
  > | null>();
  expectTypeOf(await store.fork(id, { at: "m", dialect: "ai-sdk" })).toEqualTypeOf<
    Session<DialectMessages["ai-sdk"]>
  >();
  expectTypeOf(await store.read(id, { dialect: "openai-chat" })).toEqualTypeOf<
    Reading<DialectMessages["openai-chat"]>
  >();
  expectTypeOf(await store.resume(id)).toEqualTypeOf<Session<unknown>>();
  expectTypeOf(await store.read(id)).toEqualTypeOf<Reading<unknown>>();
  expectTypeOf(await store.resume<MessageParam>(id)).toEqualTypeOf<Session<MessageParam>>();

  // @ts-expect-error no built-in dialect has that name
  await store.create({ dialect: "anthropics" });
  // @ts-expect-error a session needs a dialect
  await store.create({ title: "no dialect" });
  // @ts-expect-error no built-in dialect has that name
  await store.resume(id, { dialect: "openai" });

  const anthropic = await store.create({ dialect: "anthropic" });
  // @ts-expect-error the API has no such role
  await anthropic.startTurn({ role: "tool", content: [] });
  // @ts-expect-error a message has content
  await anthropic.startTurn({ role: "user" });
  // @ts-expect-error a content of Gemini
  await anthropic.startTurn({ role: "user", parts: [{ text: "hello" }] });

  const aiSdk = await store.create({ dialect: "ai-sdk" });
  // @ts-expect-error a tool message has a list of results
  await aiSdk.startTurn({ role: "tool", content: "done" });
  // @ts-expect-error a developer message belongs to OpenAI
  await aiSdk.startTurn({ role: "developer", content: "be short" });

  const chat = await store.create({ dialect: "openai-chat" });
  // @ts-expect-error a result names its call
  await chat.startTurn({ role: "tool", content: "done" });

  const responses = await store.create({ dialect: "openai-responses" });
  // @ts-expect-error a message has content
  await responses.startTurn({ role: "user" });

  const gemini = await store.create({ dialect: "gemini" });
  // @ts-expect-error a content has parts
  await gemini.startTurn({ role: "user", content: "hello" });

  const acp = await store.create({ dialect: "acp" });
  // @ts-expect-error a message of a model
  await acp.startTurn({ role: "user", content: "hello" });
}
void inferred;
