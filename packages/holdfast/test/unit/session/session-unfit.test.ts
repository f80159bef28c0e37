import { dialects, isHoldfastError, openStore, type Session } from "holdfast";
import { describe, expect, test } from "vitest";
import { voices } from "../dialects/dialect-voices.ts";
import { type Made, Speaker } from "../sync/sync-agents.ts";

/**
 * What is no message of the dialect is refused, wherever messages come in, with its place and what it is; and nothing
 * is recorded.
 */

/** As LangChain makes them: no role, and a class of their own. */
class BaseMessage {
  lc_serializable = true;
  lc_kwargs: Record<string, unknown>;
  content: string;

  constructor(content: string) {
    this.content = content;
    this.lc_kwargs = { content };
  }
  get type(): string {
    return "human";
  }
}
class HumanMessage extends BaseMessage {}

const BAD: [what: string, value: (good: Made) => Made][] = [
  ["a string", () => "hello"],
  ["a number", () => 7],
  ["a boolean", () => true],
  ["null", () => null],
  ["undefined", () => undefined],
  ["an object without members", () => ({})],
  ["a wrapped message", (good) => ({ message: good })],
  ["a wrapped message with a type", (good) => ({ type: "human", data: { content: good } })],
  ["a LangChain message", () => new HumanMessage("hello")],
  ["a role of another SDK", () => ({ role: "human", content: "hello" })],
  ["a UI message", () => ({ id: "1", role: "narrator", parts: [{ type: "text", text: "hello" }] })],
  ["a promise", (good) => Promise.resolve(good)],
  ["a function", () => () => "hello"],
  ["a list in a list", (good) => [good]],
  ["a Date", () => new Date(0)],
];

type Way = (session: Session<Made>, bad: Made, good: Made, turn: Session<Made>["turn"]) => Promise<unknown>;

/** Undefined and lists mean something else in some places. */
const WAYS: [name: string, way: Way, passes: string[]][] = [
  ["sync", (session, bad, good) => session.sync([...session.messages, good, bad]), []],
  ["sync, in the middle", (session, bad, good) => session.sync([...session.messages, bad, good]), []],
  ["sync that rewrites", (session, bad, good) => session.sync([good, bad], { rewrite: "epoch" }), []],
  ["append", (_session, bad, _good, turn) => turn!.append(bad), ["a list in a list"]],
  ["append of several", (_session, bad, good, turn) => turn!.append([good, bad]), []],
  ["commit", (_session, bad, _good, turn) => turn!.request().draft.commit(bad), ["a list in a list"]],
  ["enqueue", (session, bad) => session.enqueue(bad), []],
  ["replace", (session, bad, good) => session.replace([good, bad], { reason: "compaction" }), []],
  [
    "replace by an entry",
    (session, bad) => session.replace([{ ...session.entries[0]!, id: "another", message: bad }], { reason: "clear" }),
    [],
  ],
  ["edit", (session, bad) => session.edit([session.entries[0]!.id], [bad], { reason: "shorter" }), []],
  ["toolEnded", (_session, bad, _good, turn) => turn!.toolEnded("a", { value: 1 }, bad), ["undefined"]],
];

describe.each(voices.map((voice) => [voice.dialect.name, voice] as const))("%s", (name, voice) => {
  const { user, calls } = new Speaker(voice);

  async function begun(): Promise<{ session: Session<Made>; done: () => Promise<void> }> {
    const store = await openStore("memory:");
    const session = await store.create<Made>({ dialect: voice.dialect as Made });
    await session.startTurn(user("go"));
    await session.turn!.append(calls("a"));
    return { session, done: () => store.close() };
  }

  test.each(WAYS)("%s refuses what is no message, and records nothing", async (way, act, passes) => {
    const { session, done } = await begun();
    for (const [what, value] of BAD) {
      if (passes.includes(what)) continue;
      const before = [session.entries, session.queue, session.messages];
      const error = await act(session, value(user("x")), user("good"), session.turn).then(
        () => null,
        (reason: unknown) => reason,
      );
      if (!isHoldfastError(error)) throw new Error(`${way} of ${what}: ${String(error)}`);
      expect([what, error.code]).toEqual([what, "MESSAGE_UNFIT"]);
      expect(error.facts).toMatchObject({ dialect: name, why: expect.any(String), found: expect.any(String) });
      if (way.startsWith("sync") || way === "append of several" || way === "replace") {
        expect(error.facts["index"], `${way} of ${what}`).toBeTypeOf("number");
      }
      expect([session.entries, session.queue, session.messages]).toEqual(before);
    }
    await done();
  });

  test("startTurn", async () => {
    await using store = await openStore("memory:");
    const session = await store.create<Made>({ dialect: voice.dialect as Made });
    for (const [what, value] of BAD) {
      if (what === "a list in a list") continue;
      await expect(session.startTurn(value(user("x"))), what).rejects.toMatchObject({ code: "MESSAGE_UNFIT" });
      await expect(session.sync([value(user("x"))]), what).rejects.toMatchObject({
        code: "MESSAGE_UNFIT",
        facts: { index: 0 },
      });
    }
    expect(session.entries).toEqual([]);
    expect(session.turn).toBeNull();
  });

  test("what is no list is refused where a list is wanted", async () => {
    const { session, done } = await begun();
    const before = session.entries;
    for (const bad of ["hello", null, undefined, 7, { length: 1, 0: user("x") }, new Set([user("x")])] as Made[]) {
      for (const refused of [
        session.sync(bad),
        session.replace(bad, { reason: "clear" }),
        session.edit([session.entries[0]!.id], bad, { reason: "x" }),
        session.edit(bad, [], { reason: "x" }),
      ]) {
        const code = await refused.then(
          () => "nothing",
          (error: unknown) => (isHoldfastError(error) ? error.code : String(error)),
        );
        expect(["MESSAGE_UNFIT", "RECORD_INVALID"]).toContain(code);
      }
    }
    for (const empty of [session.turn!.append([]), session.replace([null as Made], { reason: "clear" })]) {
      await expect(empty).rejects.toMatchObject({ code: "MESSAGE_UNFIT" });
    }
    expect(session.entries).toEqual(before);
    await done();
  });
});

test("what was found is said without what it says", async () => {
  await using store = await openStore("memory:");
  const session = await store.create<Made>({ dialect: "anthropic" });
  const error = await session
    .sync([{ role: "user", content: "1" }, new HumanMessage("a secret")] as Made)
    .catch((reason) => reason);
  expect(error.facts).toMatchObject({
    index: 1,
    found: 'an object of class HumanMessage with the members "lc_serializable", "lc_kwargs", "content"',
  });
  expect(error.message).toContain("messages[1]");
  expect(JSON.stringify(error.facts) + error.message).not.toContain("a secret");
});

test("every dialect is among these", () => {
  expect(voices.map(({ dialect }) => dialect.name).sort()).toEqual(Object.keys(dialects).sort());
});

test("a message of the assistant's is no prompt: it is not queued, where no turn could take it", async () => {
  await using store = await openStore("memory:");
  const session = await store.create<{ role: string; content: string }>({ dialect: "anthropic" });
  const answer = { role: "assistant", content: "hello" };
  await expect(session.enqueue(answer)).rejects.toMatchObject({ code: "MESSAGE_UNFIT" });
  expect(session.queue).toEqual([]);
});
