import { openStore, type Session } from "holdfast";
import { describe, expect, test } from "vitest";
import { type MadeCall, type MadeStep, type Voice, voices } from "../../dialects/dialect-voices.ts";
import { judges, told } from "../../dialects/provider-judges.ts";

/**
 * Calls in numbers, under names and with ids that a fast path or a plain object would stumble over: at the append, and
 * at every resume after it.
 */

// biome-ignore lint/suspicious/noExplicitAny: each voice has messages of its own.
type M = any;

const callOf = (id: string | null, name = "read"): MadeCall => ({ id, name, input: "whole" });
const stepOf = (of: Partial<MadeStep>): MadeStep => ({
  reasoning: "none",
  text: null,
  calls: [],
  after: null,
  provider: "none",
  ...of,
});
const NAMES = ["constructor", "__proto__", "toString", "hasOwnProperty", "then", "#0", "read#0", "of read", "any", " "];

/** With the calls of one answer, then whatever `happens`; closed, opened again, and gone on with. */
async function lived(
  voice: Voice,
  calls: readonly MadeCall[],
  happens: (session: Session<M>) => Promise<void>,
): Promise<{ before: readonly M[]; after: readonly M[]; open: readonly string[] }> {
  const { name } = voice.dialect;
  const store = await openStore("memory:", { recordsToolStarts: true });
  const session = await store.create<M>({ dialect: name as never });
  const turn = await session.startTurn(voice.user("go"));
  await turn.append(judges[name]!.signed(voice.step(stepOf({ calls }), 1), session.messages) as M[]);
  await happens(session);
  const open = turn.open.map(({ id }) => id);
  const before = session.messages;
  const { id } = session;
  await session.close();
  const again = await store.resume<M>(id);
  const made = again.interruption!.calls.filter(({ message }) => message !== null);
  expect(made.map((call) => call.id)).toEqual(open);
  const read = await store.read<M>(id);
  expect(read.messages).toEqual(again.messages);
  await again.startTurn(voice.user("and now?"));
  const after = again.messages;
  await store.close();
  return { before, after, open };
}

describe.each(voices.map((voice) => [voice.dialect.name, voice] as const))("%s", (name, voice) => {
  const judged = (view: readonly M[]): string => told(judges[name]!.judge(view));

  test.each([1, 8, 9, 30])("%i calls in one answer, and results with ids that no call has", async (count) => {
    const calls = Array.from({ length: count }, (_, at) => callOf(`c${at}`));
    const { before, after, open } = await lived(voice, calls, async (session) => {
      const { turn } = session;
      for (const id of ["nobody", "constructor", "__proto__", "c", `c${count}`]) {
        await turn!.append(voice.result(callOf(id), "whose?", false) as M);
      }
      await turn!.append(voice.result(callOf(`c${count - 1}`), "mine", false) as M);
      await turn!.append(voice.result(callOf(`c${count - 1}`), "again", false) as M);
    });
    expect(open).toEqual(calls.slice(0, -1).map(({ id }) => id));
    expect(JSON.stringify(before)).toContain("mine");
    expect(JSON.stringify(before)).not.toContain("again");
    // An ACP client is shown the end of a call that was never announced: that it ran is something to show.
    if (name !== "acp") expect(JSON.stringify(before)).not.toContain("whose?");
    expect(judged(after)).toBe("");
  });

  test.each([1, 9])("tools and calls with names that every object has, %i of each", async (times) => {
    const names = NAMES.filter((one) => name !== "acp" || one.trim() !== "");
    const calls = Array.from({ length: times }, (_, n) => n).flatMap((n) =>
      names.map((one) => callOf(n === 0 ? one : `${one}${n}`, one)),
    );
    const { after, open } = await lived(voice, calls, async (session) => {
      const { turn } = session;
      for (const [at, { id }] of calls.entries()) {
        if (at % 2 === 0) expect(await turn!.tool(id!, () => `ran ${at}`)).toEqual({ value: `ran ${at}` });
      }
    });
    expect(open).toEqual(calls.filter((_, at) => at % 2 === 1).map(({ id }) => id));
    for (const at of calls.keys()) if (at % 2 === 0) expect(JSON.stringify(after)).toContain(`ran ${at}`);
    expect(judged(after)).toBe("");
  });

  test("a started tool whose call was never recorded, under such a name, is named to the model", async () => {
    const { after } = await lived(voice, [callOf("a")], async (session) => {
      const { turn } = session;
      await turn!.tool("a", () => "ok");
      turn!.request();
      await turn!.toolStarted("__proto__", { name: "constructor", input: {} });
    });
    expect(JSON.stringify(after)).toContain("constructor");
    expect(judged(after)).toBe("");
  });
});
