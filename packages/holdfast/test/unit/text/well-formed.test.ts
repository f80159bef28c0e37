import { signPart } from "@holdfast/testkit/internal/providers";
import fc from "fast-check";
import { type Entry, openStore, type Session, type Store } from "holdfast";
import { describe, expect, test } from "vitest";
import { equal } from "../../../src/dialects/order/sameness.ts";
import { beginningOf, isWellFormed, wellFormed } from "../../../src/text/well-formed.ts";
import { holds, seedOf } from "../../seed.ts";
import { entry } from "../dialects/dialect-conversations.ts";
import { type MadeStep, type Voice, voices } from "../dialects/dialect-voices.ts";
import { judges, told } from "../dialects/provider-judges.ts";

const seed = seedOf(import.meta.url, "unit");

/** Half of 😀: the first, and the second. */
const HIGH = "\ud83d";
const LOW = "\ude00";
const stepOf = (of: Partial<MadeStep>): MadeStep => ({
  reasoning: "none",
  text: null,
  calls: [],
  after: null,
  provider: "none",
  ...of,
});

// biome-ignore lint/suspicious/noExplicitAny: each voice has messages of its own.
type M = any;

async function begun(voice: Voice): Promise<{ store: Store; session: Session<M> }> {
  const store = await openStore("memory:", { recordsToolStarts: true });
  return { store, session: await store.create<M>({ dialect: voice.dialect.name as never }) };
}

const judged = ({ dialect }: Voice, messages: readonly unknown[]): string =>
  told(judges[dialect.name]!.judge(messages));

describe("wellFormed", () => {
  test("halves and NUL become U+FFFD, in names too; whole characters, bytes and all else stay", () => {
    const bytes = new Uint8Array([0, 216]);
    expect(wellFormed([`a${HIGH}`, `${LOW}b`, "a\0b", "😀", 1, null, bytes])).toEqual([
      "a\ufffd",
      "\ufffdb",
      "a\ufffdb",
      "😀",
      1,
      null,
      bytes,
    ]);
    expect(wellFormed({ [HIGH]: { [LOW]: HIGH } })).toEqual({ "\ufffd": { "\ufffd": "\ufffd" } });
    const url = new URL("https://example.org/");
    expect((wellFormed({ url, text: HIGH }) as { url: URL }).url).toBe(url);
  });

  test("the very same value where nothing is wrong, and untouched parts where something is", () => {
    const value = { a: ["b", { c: "😀" }] };
    expect(wellFormed(value)).toBe(value);
    expect(wellFormed([value, HIGH])[0]).toBe(value);
  });

  test("no member is lost where two names differ in their halves alone, or one is taken already", () => {
    expect(wellFormed({ [HIGH]: 1, [LOW]: 2, "\ufffd": 3 })).toEqual({
      "\ufffd": 3,
      "\ufffd\ufffd": 1,
      "\ufffd\ufffd\ufffd": 2,
    });
  });

  test("a member called __proto__ stays one", () => {
    const made = wellFormed(JSON.parse(`{"__proto__":{"x":"\\ud83d"}}`) as object);
    expect(JSON.stringify(made)).toBe('{"__proto__":{"x":"\ufffd"}}');
  });

  test("well-formed, whatever it is given, the same a second time, and equal to what it was made of", () => {
    const text = fc.string({ unit: fc.constantFrom("a", HIGH, LOW, "\0", "😀", "\ufffd") });
    const value = fc.letrec((tie) => ({
      value: fc.oneof(
        { depthSize: "small" },
        text,
        fc.integer(),
        fc.array(tie("value")),
        fc.dictionary(text, tie("value")),
      ),
    })).value;
    holds(
      fc.property(value, (given) => {
        const made = wellFormed(given);
        expect(isWellFormed(made)).toBe(true);
        expect(JSON.stringify(made)).not.toMatch(/\\ud|\\u0000/);
        expect(wellFormed(made)).toBe(made);
        expect(equal(given, made)).toBe(true);
        if (isWellFormed(given)) expect(made).toBe(given);
      }),
      seed,
      500,
    );
  });

  test("the beginning of a text ends between characters", () => {
    expect(beginningOf("ab😀", 3)).toBe("ab");
    expect(beginningOf("ab😀", 4)).toBe("ab😀");
    expect(beginningOf("ab😀c", 4)).toBe("ab😀");
    expect(beginningOf("abc", 3)).toBe("abc");
  });
});

describe.each(voices.map((voice) => [voice.dialect.name, voice] as const))("%s", (name, voice) => {
  const call = (id: string) => ({ id, name: "read", input: "whole" }) as const;

  test("half a character in a prompt, an answer, an input, a result and an error: none is sent, all is kept", async () => {
    const { store, session } = await begun(voice);
    const turn = await session.startTurn(voice.user(`prompt ${HIGH}`));
    const answer = voice.step(stepOf({ text: `says ${LOW}`, calls: [call("a"), call("b"), call("c")] }), 1);
    await turn.append(judges[name]!.signed(answer, session.messages));
    await turn.tool("a", () => `cut ${HIGH}`);
    await turn.tool("b", () => ({ [`key ${LOW}`]: [`nested ${HIGH}`] }));
    await turn.tool("c", () => {
      throw new Error(`failed ${HIGH}`);
    });
    const raw = JSON.stringify(session.messages);
    expect(isWellFormed(session.messages)).toBe(true);
    for (const word of ["prompt \ufffd", "says \ufffd", "cut \ufffd", "failed \ufffd"]) expect(raw).toContain(word);
    if (name !== "acp") expect(judged(voice, session.messages)).toBe("");
    expect(JSON.stringify(session.entries.map(({ message }) => message))).toContain(`prompt \\ud83d`);
    const records = await Array.fromAsync(store.history(session.id));
    for (const words of ["prompt \\ud83d", "cut \\ud83d", "key \\ude00", "nested \\ud83d", "failed \\ud83d"]) {
      expect(JSON.stringify(records)).toContain(words);
    }
    await store.close();
  });

  test("a stream that was killed between two halves, and words of whoever stopped the turn", async () => {
    const { store, session } = await begun(voice);
    const turn = await session.startTurn(voice.user("go"));
    const { draft } = turn.request();
    draft.push({ text: `half of it: ${HIGH}` });
    await session.flush();
    await turn.abort({ by: `Ann ${HIGH}`, reason: `because ${LOW}` });
    await session.startTurn(voice.user("and now?"));
    expect(session.entries.some(({ incomplete }) => incomplete)).toBe(true);
    expect(isWellFormed(session.messages)).toBe(true);
    expect(JSON.stringify(session.messages)).toContain("half of it: \ufffd");
    expect(judged(voice, session.messages)).toBe("");
    await store.close();
  });

  test("two halves that came in two pieces are one character", async () => {
    const { store, session } = await begun(voice);
    const turn = await session.startTurn(voice.user("go"));
    const { draft } = turn.request();
    draft.push({ text: `one ${HIGH}` });
    await session.flush();
    draft.push({ text: `${LOW} smile` });
    await session.flush();
    await turn.abort({ by: "user" });
    await session.startTurn(voice.user("and now?"));
    expect(JSON.stringify(session.messages)).toContain("one 😀 smile");
    await store.close();
  });

  test("an edit and a compaction", async () => {
    const { store, session } = await begun(voice);
    const turn = await session.startTurn(voice.user("go"), { id: "p" });
    await turn.append(voice.step(stepOf({ text: "well" }), 1));
    await turn.end();
    await session.edit(["p"], [voice.user(`shorter ${HIGH}`)], { reason: "test", now: true });
    expect(JSON.stringify(session.messages)).toContain("shorter \ufffd");
    await session.replace([voice.user(`summary ${LOW}`), ...session.entries.slice(-1)], { reason: "compaction" });
    expect(isWellFormed(session.messages)).toBe(true);
    expect(JSON.stringify(session.messages)).toContain("summary \ufffd");
    await store.close();
  });

  test("R1: the same view from the same records, and the same objects; with no half in it, the recorded ones", async () => {
    const { store, session } = await begun(voice);
    const turn = await session.startTurn(voice.user("whole"));
    await turn.append(voice.step(stepOf({ text: "as it is" }), 1));
    const recorded = new Set(session.entries.map(({ message }) => message));
    for (const message of session.messages) expect(recorded.has(message)).toBe(true);
    const before = session.messages;
    await turn.append(voice.user(`half ${HIGH}`));
    const after = session.messages;
    expect(after.slice(0, before.length)).toEqual(before);
    // What is whole is handed on untouched, beside what is not.
    for (const [at, message] of before.entries()) expect(after[at]).toBe(message);
    await session.note("changes", "nothing");
    for (const [at, message] of session.messages.entries()) expect(message).toBe(after[at]);
    const read = await store.read(session.id);
    expect(read.messages).toEqual(after);
    await store.close();
  });

  test("sync knows what it handed out, by reference, as a copy, and beside the application's own original", async () => {
    const { store, session } = await begun(voice);
    const own: M[] = [voice.user(`go ${HIGH}`), ...voice.step(stepOf({ text: `yes ${LOW}` }), 1)];
    await session.sync(own);
    const ids = session.entries.map(({ id }) => id);
    const same = async (messages: readonly M[]): Promise<void> => {
      expect(await session.sync(messages, { rewrite: "error" })).toEqual({ appended: [], epoch: false });
      expect(session.entries.map(({ id }) => id)).toEqual(ids);
    };
    await same(own);
    await same(structuredClone(own));
    await same([...session.messages]);
    await same(structuredClone([...session.messages]));
    await store.close();
  });

  test("sync of another process: an array made from the view, which goes on, and is then cut", async () => {
    const { store, session } = await begun(voice);
    const turn = await session.startTurn(voice.user(`go ${HIGH}`), { id: "p" });
    await turn.append(voice.step(stepOf({ text: `yes ${LOW}` }), 1), { id: "a" });
    await turn.end();
    const { id } = session;
    await session.close();
    const again = await store.resume<M>(id);
    const more: M[] = [voice.user(`more ${HIGH}`), ...voice.step(stepOf({ text: "ok" }), 2)];
    const array: M[] = [...again.messages, ...more];
    const { appended, epoch } = await again.sync(array, { rewrite: "error" });
    expect([appended.length, epoch]).toEqual([more.length, false]);
    // Rewound: what is left keeps its ids.
    await again.sync(structuredClone(array.slice(0, 1)));
    expect(again.entries.map((one: Entry<M>) => one.id)).toEqual(["p"]);
    await store.close();
  });

  test("R15: an id that was seen before, with what was handed out under it", async () => {
    const { store, session } = await begun(voice);
    const turn = await session.startTurn(voice.user(`go ${HIGH}`));
    const [message] = voice.step(stepOf({ text: `yes ${LOW}` }), 1);
    const first = await turn.append(message, { id: "x" });
    expect(await turn.append(message, { id: "x" })).toEqual(first);
    expect(await turn.append(session.messages.at(-1)!, { id: "x" })).toEqual(first);
    await expect(turn.append(voice.step(stepOf({ text: "yes, but" }), 1)[0], { id: "x" })).rejects.toMatchObject({
      code: "MESSAGE_ID_TAKEN",
    });
    await store.close();
  });
});

describe("input that a model wrote with half a character", () => {
  const arranged = (voice: Voice, messages: readonly M[]): M[] =>
    wellFormed(
      voice.dialect.arrange(
        messages.map((message, at) => entry(message, at)),
        { changedAt: null, next: "model" },
      ),
    ) as M[];
  const of = (name: string): Voice => voices.find(({ dialect }) => dialect.name === name)!;

  test("gemini: a signature is for its part as it came, and goes; the API takes a mark in its place", () => {
    const voice = of("gemini");
    const call = (args: object) => ({ functionCall: { id: "a", name: "say", args } });
    const said = (part: object) => ({ role: "model", parts: [{ ...part, thoughtSignature: signPart(part as never) }] });
    const answer = {
      role: "user",
      parts: [{ functionResponse: { id: "a", name: "say", response: { output: "ok" } } }],
    };
    const whole = [voice.user("go"), said(call({ text: "😀" })), answer];
    expect(arranged(voice, whole)).toEqual(whole);
    const shown = arranged(voice, [voice.user("go"), said(call({ text: HIGH })), answer]);
    expect(shown[1].parts[0]).toMatchObject({ functionCall: { args: { text: "\ufffd" } } });
    expect(judged(voice, shown)).toBe("");
    const text = arranged(voice, [voice.user("go"), said({ text: `so ${HIGH}` }), voice.user("and?")]);
    expect(text[1]).toEqual({ role: "model", parts: [{ text: "so \ufffd" }] });
  });

  test("ai-sdk: the same, in the options of its provider", () => {
    const voice = of("ai-sdk");
    const call = (text: string): M => ({
      role: "assistant",
      content: [
        {
          type: "tool-call",
          toolCallId: "a",
          toolName: "say",
          input: { text },
          providerOptions: { google: { thoughtSignature: "sig" } },
        },
      ],
    });
    const answer = voice.result({ id: "a", name: "say", input: "whole" }, "ok", false);
    expect(arranged(voice, [voice.user("go"), call("😀"), answer])[1]).toEqual(call("😀"));
    const [part] = arranged(voice, [voice.user("go"), call(HIGH), answer])[1].content;
    expect(part).toEqual({ type: "tool-call", toolCallId: "a", toolName: "say", input: { text: "\ufffd" } });
  });

  test("openai: arguments are JSON text, in which half a character is written with an escape", () => {
    const whole = '{ "text" : "\\ud83d\\ude00 \\u00e9" }';
    const half = '{ "text" : "\\ud83d", "a\\u0000b" : 1 }';
    const cut = '{ "text" : "\\ud83d';
    const chat = (text: string): M => ({
      role: "assistant",
      content: null,
      tool_calls: [{ id: "a", type: "function", function: { name: "say", arguments: text } }],
    });
    const item = (text: string): M => ({
      type: "function_call",
      id: "fc_a",
      call_id: "a",
      name: "say",
      arguments: text,
    });
    const chatAnswer = of("openai-chat").result({ id: "a", name: "say", input: "whole" }, "ok", false);
    const itemAnswer = of("openai-responses").result({ id: "a", name: "say", input: "whole" }, "ok", false);
    const inChat = (text: string): string =>
      arranged(of("openai-chat"), [of("openai-chat").user("go"), chat(text), chatAnswer])[1].tool_calls[0].function
        .arguments;
    const inItem = (text: string): string =>
      arranged(of("openai-responses"), [of("openai-responses").user("go"), item(text), itemAnswer])[1].arguments;
    for (const sent of [inChat, inItem]) {
      expect(sent(whole)).toBe(whole);
      expect(sent(half)).toBe('{"text":"\ufffd","a\ufffdb":1}');
      expect(JSON.parse(sent(cut))).toEqual({ unparsed: cut });
    }
  });
});

describe.each(
  voices.filter(({ dialect }) => dialect.name !== "acp").map((voice) => [voice.dialect.name, voice] as const),
)("%s: ids and names", (_, voice) => {
  const { dialect } = voice;
  const view = (ids: readonly string[], name = "read"): readonly M[] => {
    const calls = ids.map((id) => ({ id, name, input: "whole" }) as const);
    const messages = [
      voice.user("go"),
      ...voice.step(stepOf({ calls }), 1),
      ...calls.map((one, at) => voice.result(one, `result ${at}`, false)),
    ];
    const step = "s1";
    const entries = messages.map((message, at) =>
      entry(message, at, at > 0 && dialect.role(message) === "assistant" ? { step } : {}),
    );
    return wellFormed(dialect.arrange(entries, { changedAt: null, next: "model" }));
  };

  test("ids that differ in their halves alone stay apart, each with its own result", () => {
    const shown = view([`a${HIGH}`, `a${LOW}`, "a\ufffd"]);
    expect(isWellFormed(shown)).toBe(true);
    const calls = shown.flatMap((message) => dialect.calls(message).map(({ id }) => id));
    const results = shown.flatMap((message) => dialect.results(message).map(({ call }) => call));
    expect(new Set(calls).size).toBe(3);
    expect(results).toEqual(calls);
    expect(JSON.stringify(shown)).toMatch(/result 0.*result 1.*result 2/);
  });

  test("an id that is cut to the length that the provider takes is cut between characters", () => {
    const shown = view([`${"x".repeat(63)}😀`, `${"x".repeat(61)}😀1`, `${"x".repeat(61)}😀2`]);
    expect(isWellFormed(shown)).toBe(true);
    expect(judged(voice, [...shown, voice.user("so?")])).toBe("");
  });
});
