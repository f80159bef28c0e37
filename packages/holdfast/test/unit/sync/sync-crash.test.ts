import type { Session } from "holdfast";
import { describe, expect, test } from "vitest";
import { inArray, judged, type Made, Speaker, spoken } from "./sync-agents.ts";
import { CrashingStore } from "./sync-crash-disk.ts";

/**
 * P1, P5, R14 g: a sync that changes what is recorded, killed at each of its writes. What had been acknowledged is
 * there, as it was or as the array has it now, except an end that the array has replaced by another one; a call whose
 * tool ran has its result, or the interruption names it.
 */

describe.each(spoken)("a rewriting sync, killed at every write, in %s", (name, voice) => {
  const { user, system, says, step, result } = new Speaker(voice);
  const { dialect } = voice;
  const call = (id: string, text: string | null = null): Made[] =>
    step({ text, calls: [{ id, name: "read", input: "whole" }] });

  /**
   * The same message with something else in it than at first, as some agents send it back. Other members are no part of
   * what Anthropic is sent.
   */
  const stripped = (message: Made): Made =>
    name === "anthropic"
      ? { ...message, content: [{ type: "text", text: "hm" }, ...message.content] }
      : { ...message, note: "not there at first" };

  const seen = (session: Session<Made>): string[] => inArray(session.entries).map((message) => JSON.stringify(message));
  const named = (session: Session<Made>): string[] =>
    session.interruption?.calls.map(({ id, state }) => `${id} ${state}`) ?? [];

  async function eachKill(
    was: Made[],
    is: Made[],
    { between = async () => undefined, check = () => undefined, left = 0 }: Partial<Scene> = {},
  ): Promise<void> {
    const [before, after] = structuredClone([was, is]) as [Made[], Made[]];
    await using crashing = new CrashingStore();
    const session = await crashing.create(voice);
    await session.sync(before);
    await between(session);
    const old = seen(session);
    const found = await crashing.killedIn(session, () => session.sync(after));
    const wanted = after.map((message) => JSON.stringify(message));
    for (const [n, killed] of found.entries()) {
      const has = seen(killed);
      const isOld = equal(has, old);
      // What is new may be missing from the end; what had been acknowledged, and is kept, may not.
      const isNew =
        equal(has, wanted.slice(0, has.length)) && has.length >= Math.min(before.length - left, wanted.length);
      expect(isOld || isNew, `kill ${n}: ${has.join("\n")}`).toBe(true);
      expect(judged(voice, killed.messages)).toEqual([]);
      check(killed);
    }
    expect(seen(found.at(-1)!)).toEqual(wanted);
    expect(await session.sync(after)).toEqual({ appended: [], epoch: false });
  }

  interface Scene {
    between(session: Session<Made>): Promise<unknown>;
    check(killed: Session<Made>): void;
    /** So many of the messages the application has left out, or replaced at the end. */
    left: number;
  }

  const isCallKnown = (id: string) => (killed: Session<Made>) => {
    const results = killed.messages.flatMap((message) => dialect.results(message).map(({ call: of }) => of));
    const isAnswered = results.includes(id) && JSON.stringify(killed.messages).includes("what it found");
    expect(isAnswered || named(killed).includes(`${id} outcome-unknown`), JSON.stringify(named(killed))).toBe(true);
  };

  test("the last result is trimmed before the model is asked", async () => {
    const before = [user("1"), ...call("a"), result("a", "what it found, at length")];
    await eachKill(before, [...before.slice(0, -1), result("a", "what it found"), ...says("done")], {
      check: isCallKnown("a"),
    });
  });

  test("a field of the message that made the call is stripped, and the result comes with it", async () => {
    const before = [user("1"), ...call("a")];
    const after = [...before.slice(0, -1), stripped(before.at(-1)), result("a", "what it found"), ...says("done")];
    await eachKill(before, after, {
      between: (session) => session.turn!.tool("a", () => "what it found"),
      check: isCallKnown("a"),
    });
  });

  test("the same while the array has no result yet, and the tool has ended", async () => {
    const before = [user("1"), ...call("a")];
    await using crashing = new CrashingStore();
    const session = await crashing.create(voice);
    await session.sync(before);
    await session.turn!.tool("a", () => "what it found");
    const after = [...before.slice(0, -1), stripped(before.at(-1))];
    const found = await crashing.killedIn(session, () => session.sync(after));
    for (const killed of found) isCallKnown("a")(killed);
    expect(found.length).toBeGreaterThan(1);
    after.push(...says("done"));
    await session.sync(after);
    expect(JSON.stringify(session.messages)).toContain("what it found");
    expect(session.turn).toBeNull();
  });

  test("the same while the tool runs: its start and its end belong to the message in that place", async () => {
    const before = [user("1"), ...call("a")];
    await using crashing = new CrashingStore();
    const session = await crashing.create(voice);
    await session.sync(before);
    const { turn } = session;
    const { promise, resolve } = Promise.withResolvers<string>();
    const ran = turn!.tool("a", () => promise);
    await new Promise((later) => setImmediate(later));
    for (const change of [[], [system("be kind")]]) {
      const after = [...change, ...before.slice(0, -1), stripped(before.at(-1))];
      const found = await crashing.killedIn(session, () => session.sync(after));
      for (const killed of found) expect(named(killed)).toEqual(["a outcome-unknown"]);
    }
    expect(session.turn).toBe(turn);
    resolve("what it found");
    expect(await ran).toEqual({ value: "what it found" });
    expect(session.entries.filter(({ late }) => late)).toEqual([]);
    expect(JSON.stringify(session.messages)).toContain("what it found");
    expect(judged(voice, session.messages)).toEqual([]);
  });

  test("the answer is another one, or another turn comes with it", async () => {
    const before = [user("1"), ...says("one")];
    const after = [before[0], ...says("another one")];
    await eachKill(before, after, { left: 1 });
    await eachKill(before, [...after, user("2"), ...call("a"), result("a", "what it found")], { left: 1 });
  });

  test("the prompt is trimmed when its turn is over, with a call in it", async () => {
    const before = [user("0"), ...says("zero"), user("1, with context"), ...call("a"), result("a", "what it found")];
    const after = [...before.slice(0, 2), user("1"), ...before.slice(3), ...says("done"), user("2")];
    await eachKill(before, after, { check: isCallKnown("a") });
  });

  test("everything is another object, and says something else", async () => {
    const before = [user("1, long"), ...call("a", "let me see"), result("a", "what it found, at length")];
    const after = [user("1"), ...call("a", "see"), result("a", "what it found"), ...says("done")];
    await eachKill(before, after, { check: isCallKnown("a") });
  });

  test("a summary takes the place of the beginning, in the middle of a turn", async () => {
    const before = [user("1"), ...says("one"), user("2"), ...call("a"), result("a", "what it found")];
    await eachKill(before, [user("in short"), ...before.slice(-2), ...says("done"), user("3")], {
      left: 2,
      check: isCallKnown("a"),
    });
  });

  test("the conversation is taken back to an earlier prompt, and another one comes", async () => {
    const before = [user("1"), ...says("one"), user("2"), ...says("two")];
    await eachKill(before, [...before.slice(0, 2), user("another 2")], { left: 2 });
    await eachKill(before, [user("another 1")], { left: 4 });
    await eachKill(before, []);
  });

  test("several old results are cleared, one message is left out, and a turn is added", async () => {
    const turnOf = (id: string): Made[] => [user(id), ...call(id), result(id, "what it found"), ...says(`done ${id}`)];
    const before = ["a", "b", "c", "d"].flatMap(turnOf);
    const after = [...before];
    after[2] = result("a", "[cleared]");
    after[6] = result("b", "[cleared]");
    after.splice(8, 1);
    await eachKill(before, [...after, user("e"), ...says("e")], { left: 1 });
  });

  test("messages change places", async () => {
    const before = [user("1"), ...says("one"), user("2"), ...says("two"), user("3")];
    await eachKill(before, [before[2], before[3], before[0], before[1], before[4]]);
  });
});

function equal(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((one, n) => one === b[n]);
}
