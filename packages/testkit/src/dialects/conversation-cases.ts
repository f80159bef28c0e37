import assert from "node:assert/strict";
import type { Dialect, Entry, Session } from "holdfast";
import { Memory, openMemoryStore } from "holdfast/internal";
import { openStoreWith } from "holdfast/store";
import { mixSeeds, type Random, seededRandom } from "../simulation/random.ts";
import { type DialectCase, entryOf, inputOf, shown } from "./sample.ts";
import type { DialectSubject, SampleCall } from "./subject.ts";

const SEEDS = 60;
const VIEW = { changedAt: null, next: "model" } as const;

/** What a dialect makes of whole conversations: disordered ones, and those that a death has cut off. */
export function conversationCases<M>(subject: DialectSubject<M>): readonly DialectCase[] {
  const { dialect } = subject;
  const atoms = (view: readonly M[]): readonly unknown[] => subject.atoms?.(view) ?? view;
  return [
    {
      name: "answers every call exactly once, in order, before anything else is said",
      run: () =>
        eachDisorder(subject, (entries, seed) => {
          assertPaired(dialect, dialect.arrange(entries, VIEW), `seed ${seed}`);
        }),
    },
    {
      name: "keeps what is said and called where a server uses a call id again",
      run: () => {
        const entries = repeatedCalls(subject);
        const view = dialect.arrange(entries, VIEW);
        assertPaired(dialect, view, "a call id that is used again", { mayRepeatIds: true });
        for (const message of view) assert.equal(dialect.check(message), null, shown(message));
        assert.deepEqual(subject.judge?.(view) ?? [], [], `the provider refuses ${shown(view)}`);
        const before = entries.map(({ message }) => message);
        assert.deepEqual(calledIn(dialect, view), calledIn(dialect, before), `the calls of ${shown(view)}`);
        assert.equal(textOf(dialect, view), textOf(dialect, before), `the text of ${shown(view)}`);
      },
    },
    {
      name: "arranges what is already arranged without a change",
      run: () =>
        eachDisorder(subject, (entries, seed) => {
          const once = dialect.arrange(entries, VIEW);
          const twice = dialect.arrange(again(dialect, once), VIEW);
          assert.deepEqual(atoms(twice), atoms(once), `seed ${seed}`);
        }),
    },
    {
      name: "keeps the past unchanged as the conversation continues",
      run: () =>
        eachDisorder(subject, (entries, seed) => {
          const whole = atoms(dialect.arrange(entries, VIEW));
          for (let n = 1; n < entries.length; n++) {
            const some = entries.slice(0, n);
            if (entries[n]!.step === some.at(-1)!.step || hasOpenCall(dialect, some)) continue;
            const beginning = atoms(dialect.arrange(some, VIEW));
            assert.deepEqual(whole.slice(0, beginning.length), beginning, `seed ${seed}, ${n} entries`);
          }
        }),
    },
    {
      name: "gives a valid request after a death at any point",
      run: async () => {
        for (let cut = 1; ; cut++) {
          const isOver = await dieAndResume(subject, cut);
          if (isOver) break;
        }
      },
    },
  ];
}

/** Entries in which results are late, doubled or missing. */
function eachDisorder<M>(subject: DialectSubject<M>, run: (entries: readonly Entry<M>[], seed: number) => void): void {
  for (let seed = 1; seed <= SEEDS; seed++) run(disorderOf(subject, seededRandom(mixSeeds(seed))), seed);
}

function disorderOf<M>(subject: DialectSubject<M>, random: Random): Entry<M>[] {
  const entries: Entry<M>[] = [];
  const add = (messages: readonly M[]): void => {
    const step = `step-${entries.length}`;
    for (const message of messages) entries.push(entryOf(message, entries.length, step));
  };
  const asked: SampleCall[] = [];
  add([subject.user("hello")]);
  for (let n = 0; n < 8; n++) {
    const what = random.below(5);
    if (what === 0) add([subject.user(`prompt ${n}`)]);
    if (what === 1) add(subject.step({ text: `answer ${n}`, calls: [] }));
    if (what === 2) {
      const calls = [0, 1].slice(random.below(2)).map((index) => callOf(n, index));
      asked.push(...calls);
      add(subject.step({ text: random.chance(0.5) ? `looking ${n}` : null, calls }));
    }
    const call = asked.length > 0 ? random.pick(asked) : null;
    if (what > 2 && call) add([subject.result(call, `result ${n}`)]);
  }
  add([subject.user("and now?")]);
  return entries;
}

/** Three steps that use the same call ids, each with its results. */
function repeatedCalls<M>(subject: DialectSubject<M>): Entry<M>[] {
  const steps = [1, 2, 3].map((n) => {
    const calls = [0, 1].map((index) => ({ ...callOf(n, index), id: `call_${index}` }));
    return [
      ...subject.step({ text: `looking ${n}`, calls }).map((message) => [message, `step-${n}`] as const),
      ...calls.map((call, index) => [subject.result(call, `result ${n} ${index}`), `result-${n}-${index}`] as const),
    ];
  });
  const all = [[subject.user("hello"), "prompt"] as const, ...steps.flat()];
  return all.map(([message, step], at) => entryOf(message, at, step));
}

function calledIn<M>(dialect: Dialect<M>, view: readonly M[]): unknown[] {
  const calls = view.flatMap((message) => dialect.calls(message));
  return calls.map(({ name, input }) => ({ name, input: inputOf(input) }));
}

function textOf<M>(dialect: Dialect<M>, view: readonly M[]): string {
  return view
    .map((message) => dialect.text(message))
    .filter((text) => text !== "")
    .join("\n");
}

function callOf(n: number, index: number): SampleCall {
  return { id: `call_${n}_${index}`, name: index === 0 ? "read" : "write", input: { path: `${n}.txt` } };
}

function again<M>(dialect: Dialect<M>, view: readonly M[]): Entry<M>[] {
  let step = 0;
  return view.map((message, at) => {
    const isSameStep = at > 0 && dialect.role(message) === "assistant" && dialect.role(view[at - 1]!) === "assistant";
    if (!isSameStep) step = at;
    return entryOf(message, at, `step-${step}`);
  });
}

function hasOpenCall<M>(dialect: Dialect<M>, entries: readonly Entry<M>[]): boolean {
  const answered = new Set(entries.flatMap(({ message }) => dialect.results(message).map(({ call }) => call)));
  return entries.some(({ message }) => dialect.calls(message).some(({ id }) => !answered.has(id)));
}

/** The rules that all providers share. The last calls may wait for their results. Some accept an id twice. */
function assertPaired<M>(
  dialect: Dialect<M>,
  view: readonly M[],
  where: string,
  { mayRepeatIds = false }: { readonly mayRepeatIds?: boolean } = {},
): void {
  let open: string[] = [];
  const used = new Set<string>();
  for (const [at, message] of view.entries()) {
    const here = `${where}, messages[${at}] of ${shown(view)}`;
    const results = dialect.results(message).map(({ call }) => call);
    for (const call of results) {
      assert.equal(call, open[0], `the next result must answer the next call: ${here}`);
      open = open.slice(1);
    }
    const calls = dialect.calls(message).filter(({ by }) => by === "agent");
    const isAnswer = dialect.role(message) === "assistant";
    const isStep = isAnswer && at > 0 && dialect.role(view[at - 1]!) === "assistant";
    if (results.length === 0 && !isStep) assert.deepEqual(open, [], `calls without a result: ${here}`);
    for (const { id } of calls) {
      assert.ok(mayRepeatIds || !used.has(id), `the call id ${id} is used twice: ${here}`);
      used.add(id);
      open.push(id);
    }
  }
}

/** Kills a session after `cut` writes, resumes it, and judges what the model would be sent. True: there was no cut. */
async function dieAndResume<M>(subject: DialectSubject<M>, cut: number): Promise<boolean> {
  const { dialect } = subject;
  const memory = new Memory();
  const open = () => openStoreWith((options) => openMemoryStore({ ...options, memory }), { dialects: [dialect] });
  const first = await open();
  const session = await first.create<M>({ dialect });
  const asked: (readonly M[])[] = [];
  const isOver = await live(subject, session, cut, (view) => asked.push(view));
  memory.crash(session.id);
  const where = `killed after ${cut} writes`;
  for (const view of asked) judged(subject, view, `${where}, a request before it`);

  const second = await open();
  await using resumed = await second.resume<M>(session.id, { dialect });
  const last = asked.at(-1) ?? [];
  const atoms = (view: readonly M[]): readonly unknown[] => subject.atoms?.(view) ?? view;
  if (resumed.interruption && !resumed.interruption.answered) {
    const turn = await resumed.resumeTurn();
    const { messages } = turn.request();
    judged(subject, messages, `${where}, resumed`);
    const before = atoms(last);
    assert.deepEqual(atoms(messages).slice(0, before.length), before, `${where}: a later request changed the past`);
    await turn.append(subject.step({ text: "Done after all.", calls: [] }));
    await turn.end();
  }
  const turn = await resumed.startTurn(subject.user("and now?"));
  judged(subject, turn.request().messages, `${where}, with the next prompt`);
  await turn.end();
  return isOver;
}

/** An agent's work, one write after the other. False if it was cut off. */
async function live<M>(
  subject: DialectSubject<M>,
  session: Session<M>,
  cut: number,
  onRequest: (view: readonly M[]) => void,
): Promise<boolean> {
  const calls = [callOf(1, 0), callOf(1, 1)];
  const turn = await session.startTurn(subject.user("Please read both."));
  const writes: (() => Promise<unknown>)[] = [
    async () => {
      const { messages, draft } = turn.request();
      onRequest(messages);
      draft.push({ text: "I will" });
      await session.flush();
    },
    () => turn.append(subject.step({ text: "I will read both.", calls })),
    () => turn.toolStarted(calls[0]!.id),
    () => turn.toolStarted(calls[1]!.id),
    () => turn.toolEnded(calls[1]!.id, { value: "the second file" }),
    () => turn.append(subject.result(calls[0]!, "the first file")),
    async () => {
      const { messages, draft } = turn.request();
      onRequest(messages);
      draft.push({ text: "Both " });
      await session.flush();
    },
    () => turn.append(subject.step({ text: "Both are empty.", calls: [] })),
    () => turn.end(),
  ];
  for (const [index, write] of writes.entries()) {
    if (index + 1 > cut) return false;
    await write();
  }
  return true;
}

function judged<M>(subject: DialectSubject<M>, view: readonly M[], where: string): void {
  assertPaired(subject.dialect, view, where);
  const open = view.flatMap((message) => subject.dialect.calls(message)).filter(({ by }) => by === "agent");
  const answered = new Set(view.flatMap((message) => subject.dialect.results(message).map(({ call }) => call)));
  for (const { id } of open) assert.ok(answered.has(id), `${where}: the call ${id} has no result: ${shown(view)}`);
  assert.deepEqual(subject.judge?.(view) ?? [], [], `${where}: the provider refuses ${shown(view)}`);
}
