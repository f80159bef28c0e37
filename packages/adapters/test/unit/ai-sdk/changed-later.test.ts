import {
  experimental_createSteering,
  generateText,
  jsonSchema,
  type ModelMessage,
  streamText,
  type ToolSet,
  tool,
} from "ai";
import { openStore, type Session } from "holdfast";
import { describe, expect, test } from "vitest";
import { place } from "../../../../holdfast/test/place.ts";
import { durable, type RunOutcome } from "../../../src/ai-sdk/index.ts";
import { begun, everyWay, PROMPT, recordsOf } from "../../agents.ts";
import { FailingDisk } from "../../failing-disk.ts";
import { call, scripted, text } from "../../scripted-model.ts";

/** R19: what the application or the SDK changes after a call changes nothing that is stored. */

interface Input {
  n: number;
  list: number[];
}
const any = jsonSchema<Input>({ type: "object" });
const INPUT = { n: 1, list: [1] };
const spoil = (input: unknown): void => {
  (input as Input).n = 99;
  (input as Input).list.push(99);
};

function inputsIn(session: Session<ModelMessage>): unknown[] {
  return session.entries.flatMap(({ message: { content } }) =>
    typeof content === "string" ? [] : content.flatMap((part) => (part.type === "tool-call" ? [part.input] : [])),
  );
}

describe.each(everyWay)("%s", (_, start) => {
  test("a tool that changes its input: what is stored and sent is what the model said", async () => {
    await using here = await begun();
    const { session } = here;
    const agent = durable(session);
    const seen: unknown[] = [];
    const tools: ToolSet = {
      spoils: tool({
        inputSchema: any,
        execute: async (input) => {
          spoil(input);
          seen.push(structuredClone(input));
          return "done";
        },
      }),
    };
    const model = scripted([call("a", "spoils", INPUT)], [text("Done.")]);
    expect(await agent.finish(start(agent, { model, tools }).run)).toEqual({ kind: "completed" });
    expect(seen).toEqual([{ n: 99, list: [1, 99] }]);
    expect(inputsIn(session)).toEqual([INPUT]);
    expect(JSON.stringify(model.prompts[1]), "R1: the model sees its own words").not.toContain("99");
  });

  test("a rule that changes the call it is asked about: stored, signed and approved is what the model said", async () => {
    const store = await openStore("memory:", { recordsToolStarts: true });
    const session = await store.create<ModelMessage>({ dialect: "ai-sdk" });
    await session.startTurn(PROMPT);
    const agent = durable(session);
    const ran: unknown[] = [];
    const tools: ToolSet = {
      asks: tool({
        inputSchema: any,
        execute: async (input) => ran.push(structuredClone(input)),
        needsApproval: async (input) => {
          spoil(input);
          return true;
        },
      }),
    };
    const settings = { tools, experimental_toolApprovalSecret: "a secret of thirty-two characters" };
    const model = scripted([call("a", "asks", INPUT)]);
    const waiting = await agent.finish(start(agent, { model, ...settings }).run);
    expect(inputsIn(session)).toEqual([INPUT]);
    const { approvals } = waiting as Extract<RunOutcome, { kind: "waiting" }>;
    await agent.resume(tools, { approvals: approvals.map(({ approvalId }) => ({ approvalId, approved: true })) });
    const next = scripted([text("Done.")]);
    expect(await agent.finish(start(agent, { model: next, ...settings }).run)).toEqual({ kind: "completed" });
    expect(ran, "its signature fits").toHaveLength(1);
    expect(inputsIn(session)).toEqual([INPUT]);
  });

  test("a value that changes while it is being put into words: stored is what the tool returned", async () => {
    await using here = await begun();
    const { session } = here;
    const agent = durable(session);
    const shared = { rows: [1] };
    const tools: ToolSet = {
      shows: tool({
        inputSchema: any,
        execute: async () => shared,
        toModelOutput: async ({ output }) => {
          const value = `${(output as typeof shared).rows.length} rows`;
          shared.rows.push(2);
          await new Promise(setImmediate);
          return { type: "text" as const, value };
        },
      }),
      plain: tool({
        inputSchema: any,
        execute: async () => {
          // Behind the return, before anybody has looked.
          queueMicrotask(() => queueMicrotask(() => shared.rows.push(3)));
          return shared;
        },
      }),
    };
    const model = scripted([call("a", "shows", INPUT)], [call("b", "plain", INPUT)], [text("Done.")]);
    await agent.finish(start(agent, { model, tools }).run);
    const ended = (await recordsOf(session)).filter(({ kind }) => kind === "tool.ended");
    expect(ended).toMatchObject([{ value: { rows: [1] } }, { value: { rows: [1, 2] } }]);
    expect(session.entries.filter(({ value }) => value !== undefined).map(({ value }) => value)).toEqual([
      { rows: [1] },
    ]);
  });

  test("C19: what found no space, and is changed until it does: stored is what it was", async () => {
    using folder = place();
    const disk = new FailingDisk();
    await using store = await disk.open(folder.path);
    const session = await store.create<ModelMessage>({ dialect: "ai-sdk" });
    await session.startTurn(PROMPT);
    const value = { rows: [1] };
    const bytes = new Uint8Array([1, 2, 3]);
    const options = { maker: { mark: "first" } };
    const tools: ToolSet = {
      fills: tool({
        inputSchema: any,
        execute: async () => {
          disk.countdown = 1;
          return value;
        },
        toModelOutput: () => ({
          type: "content" as const,
          value: [
            {
              type: "file" as const,
              mediaType: "image/png",
              data: { type: "data" as const, data: bytes },
              providerOptions: options,
            },
          ],
        }),
      }),
    };
    const agent = durable(session);
    const { run } = start(agent, { model: scripted([call("a", "fills", INPUT)]), tools });
    await expect(agent.outcome(run)).rejects.toMatchObject({ code: "STORE_FULL" });
    value.rows.push(2);
    bytes.fill(9);
    options.maker.mark = "second";
    await agent.runOpen(tools);
    const [ended] = (await recordsOf(session)).filter(({ kind }) => kind === "tool.ended");
    expect(ended).toMatchObject({ value: { rows: [1] } });
    const shown = JSON.stringify(session.messages.at(-1));
    expect(shown).toContain("first");
    expect(JSON.stringify(ended)).toContain("AQID");
  });

  test("the application's own callback may do what it likes with the answer: it comes later", async () => {
    await using here = await begun();
    const { session } = here;
    const agent = durable(session);
    const signed = { maker: { signature: "s1" } };
    const onLanguageModelCallEnd = ({
      content,
    }: {
      content: { type: string; text?: string; providerMetadata?: object }[];
    }) => {
      for (const part of content) {
        if (part.text !== undefined) part.text = "Changed.";
        Object.assign(part.providerMetadata ?? {}, { maker: { signature: "forged" } });
      }
    };
    const model = scripted([{ type: "reasoning", text: "Hm.", providerMetadata: signed }, text("As it was.")]);
    await agent.finish(start(agent, { model, onLanguageModelCallEnd }).run);
    expect(session.messages.at(-1)).toEqual({
      role: "assistant",
      content: [
        { type: "reasoning", text: "Hm.", providerOptions: { maker: { signature: "s1" } } },
        { type: "text", text: "As it was." },
      ],
    });
  });
});

test("the answer is stored as it came, though the application's rule takes its time and others work with it", async () => {
  await using here = await begun();
  const { session } = here;
  const agent = durable(session);
  let content: { type: string; text?: string }[] = [];
  const tools: ToolSet = {
    asks: tool({
      inputSchema: any,
      execute: async () => "done",
      needsApproval: async () => {
        // Whoever has the answer changes it, while the rule is being asked.
        for (const part of content) if (part.text !== undefined) part.text = "Changed.";
        await new Promise(setImmediate);
        return false;
      },
    }),
  };
  const settings = agent.wrap({ model: scripted([text("As it was."), call("a", "asks", INPUT)]), tools });
  const onLanguageModelCallEnd = settings["onLanguageModelCallEnd" as never] as (event: unknown) => Promise<void>;
  const run = generateText({
    ...settings,
    onLanguageModelCallEnd: (event: { content: unknown }) => {
      content = event.content as never;
      return onLanguageModelCallEnd(event);
    },
  } as never);
  await agent.finish(run);
  expect(JSON.stringify(session.messages)).toContain("As it was.");
});

test("a tool that is run again after a resume may change its input, as it may the first time", async () => {
  const store = await openStore("memory:", { recordsToolStarts: true });
  const before = await store.create<ModelMessage>({ dialect: "ai-sdk" });
  const turn = await before.startTurn(PROMPT);
  await turn.append({
    role: "assistant",
    content: [{ type: "tool-call", toolCallId: "a", toolName: "spoils", input: INPUT }],
  });
  await before.close();
  const session = await store.resume<ModelMessage>(before.id);
  const seen: unknown[] = [];
  const spoils = tool({
    inputSchema: any,
    execute: async (input) => {
      spoil(input);
      seen.push(input);
      return "done";
    },
  });
  await durable(session).resume({ spoils } as ToolSet);
  expect(seen).toEqual([{ n: 99, list: [1, 99] }]);
  expect(inputsIn(session)).toEqual([INPUT]);
});

test("calls that the application runs itself are given to it as copies", async () => {
  await using here = await begun();
  const agent = durable(here.session);
  const tools = { ask: tool({ inputSchema: any }) } as unknown as ToolSet;
  const run = streamText(agent.wrap({ model: scripted([call("a", "ask", INPUT)]), tools }));
  const outcome = (await agent.outcome(run)) as Extract<RunOutcome, { kind: "waiting" }>;
  spoil(outcome.calls[0]!.input);
  expect(inputsIn(here.session)).toEqual([INPUT]);
});

test("of several steering messages, each is stored as it was said, however long the one before it takes", async () => {
  await using here = await begun();
  const { session } = here;
  const agent = durable(session);
  const turn = session.turn!;
  const append = turn.append.bind(turn);
  const said = ["One.", "Two."].map((words) => ({
    role: "user" as const,
    content: [{ type: "text" as const, text: words }],
  }));
  turn.append = async (...given) => {
    const appended = await append(...given);
    said[1]!.content[0]!.text = "Changed.";
    return appended;
  };
  const steering = experimental_createSteering();
  for (const message of said) void steering.steer(message);
  const run = streamText(
    agent.wrap({ model: scripted([text("Heard.")]), experimental_steering: steering } as never) as never,
  );
  await agent.finish(run);
  expect(JSON.stringify(session.messages)).toContain("Two.");
});

test("of several results that the SDK made itself, each is stored as it was sent", async () => {
  await using here = await begun();
  const { session } = here;
  const tools: ToolSet = {
    asks: tool({ inputSchema: any, execute: async () => "never", needsApproval: true }),
  };
  const agent = durable(session);
  const asked = await agent.outcome(
    streamText(agent.wrap({ model: scripted([call("a", "asks", INPUT), call("b", "asks", INPUT)]), tools })),
  );
  const { approvals } = asked as Extract<RunOutcome, { kind: "waiting" }>;
  const turn = session.turn!;
  await turn.append({
    role: "tool",
    content: approvals.map(({ approvalId }) => ({
      type: "tool-approval-response" as const,
      approvalId,
      approved: false,
      reason: "as it was",
    })),
  });
  let prompt: { content: { output?: { reason?: string } }[] }[] = [];
  const toolEnded = turn.toolEnded.bind(turn);
  turn.toolEnded = async (...given) => {
    await toolEnded(...given);
    for (const { content } of prompt) {
      for (const part of Array.isArray(content) ? content : []) if (part.output) part.output.reason = "changed";
    }
  };
  const model = scripted([text("I see.")]);
  const settings = agent.wrap({ model, tools });
  // The request, as the one that asks the model has it in hand.
  const inner = settings.model as unknown as { doStream(options: { prompt: never }): unknown };
  const doStream = inner.doStream.bind(inner);
  inner.doStream = (options) => {
    prompt = options.prompt;
    return doStream(options);
  };
  await agent.finish(streamText(settings));
  const results = (await recordsOf(session)).filter(({ kind }) => kind === "tool.ended");
  expect(results.map(({ error }) => error)).toEqual(["as it was", "as it was"]);
  expect(JSON.stringify(results.map(({ shown }) => shown))).not.toContain("changed");
});
