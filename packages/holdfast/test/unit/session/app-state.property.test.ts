import fc from "fast-check";
import { type AnthropicMessage, openStore, type Session } from "holdfast";
import { expect, test } from "vitest";
import { seedOf } from "../../seed.ts";

const seed = seedOf(import.meta.url, "unit");

type State = Readonly<Record<string, number>>;
/** `before` and `after` its unit; null: an epoch wrote it. */
interface Said {
  readonly own: { readonly n: number; readonly before: State; readonly after: State } | null;
}

/** What the state is, worked out from the rules alone. */
class Model {
  said: readonly Said[] = [];
  state: State = {};
  #n = 0;
  #undo: Pick<Model, "said" | "state"> | null = null;

  say(changes: Readonly<Record<string, number | null>>): void {
    const before = this.state;
    const after = Object.entries({ ...before, ...changes }).filter((one): one is [string, number] => one[1] !== null);
    this.state = Object.fromEntries(after);
    this.said = [...this.said, { own: { n: this.#n++, before, after: this.state } }];
    this.#undo = null;
  }

  #replace(said: readonly Said[], state: State): void {
    this.#undo = { said: this.said, state: this.state };
    this.said = said;
    this.state = state;
  }

  rewind(length: number): void {
    const [kept, dropped] = [this.said.slice(0, length), this.said.slice(length)];
    const newest = kept
      .flatMap(({ own }) => own ?? [])
      .sort((a, b) => a.n - b.n)
      .at(-1);
    const next = dropped.flatMap(({ own }) => own ?? [])[0];
    const state = kept.length === 0 ? {} : (newest?.after ?? next?.before ?? this.state);
    this.#replace(kept, dropped.length === 0 ? this.state : state);
  }

  compact(tail: number): void {
    this.#replace([{ own: null }, ...(tail === 0 ? [] : this.said.slice(-tail))], this.state);
  }

  undo(): boolean {
    if (!this.#undo) return false;
    const { said, state } = this.#undo;
    this.#undo = null;
    [this.said, this.state] = [said, state];
    return true;
  }
}

const changes = fc.dictionary(fc.constantFrom("a", "b", "c"), fc.option(fc.nat(99)), { maxKeys: 2 });
const step = fc.oneof(
  { weight: 4, arbitrary: fc.record({ do: fc.constant("talk" as const), asked: changes, answered: changes }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("rewind" as const), part: fc.nat(100) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("compact" as const), part: fc.nat(100) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constantFrom("undo" as const, "reopen" as const, "fork" as const) }) },
);

test("in any life with rewinds, compactions, undo and restarts the state is that of what is kept", async () => {
  const life = fc.asyncProperty(fc.array(step, { maxLength: 25 }), async (steps) => {
    await using store = await openStore("memory:");
    let session: Session<AnthropicMessage> = await store.create({ dialect: "anthropic" });
    const model = new Model();
    for (const one of steps) {
      const length = "part" in one ? Math.round((one.part / 100) * model.said.length) : 0;
      if (one.do === "talk") {
        const turn = await session.startTurn({ role: "user", content: "go" }, { appState: one.asked });
        model.say(one.asked);
        await turn.append({ role: "assistant", content: "done" }, { end: true, appState: one.answered });
        model.say(one.answered);
      } else if (one.do === "rewind") {
        await session.replace(session.entries.slice(0, length), { reason: length === 0 ? "clear" : "rewind" });
        model.rewind(length);
      } else if (one.do === "compact") {
        const tail = length === 0 ? [] : session.entries.slice(-length);
        await session.replace([{ role: "user", content: "so far" }, ...tail], { reason: "compaction" });
        model.compact(length);
      } else if (one.do === "undo") {
        if (model.undo()) await session.undo();
        else await expect(session.undo()).rejects.toMatchObject({ code: "UNDO_TOO_LATE" });
      } else if (one.do === "reopen") {
        const { id } = session;
        await session.close();
        session = await store.resume(id, { dialect: "anthropic" });
      } else {
        for (const [index, { own }] of model.said.entries()) {
          if (!own || model.said.slice(0, index).some((said) => said.own && said.own.n > own.n)) continue;
          const forked = await store.fork(session.id, { at: session.entries[index]!.id, dialect: "anthropic" });
          expect(forked.appState).toEqual(index === model.said.length - 1 ? model.state : own.after);
          await forked.close();
        }
      }
      expect(session.entries).toHaveLength(model.said.length);
      expect(session.appState, one.do).toEqual(model.state);
      expect((await store.read(session.id)).appState).toEqual(model.state);
    }
    await session.close();
  });
  await fc.assert(life, { seed, numRuns: 150 });
});
