import type { JournalStore, VerbatimLine } from "holdfast/store";
import type { OpenInMemory } from "../memory-subject.ts";
import { type BrokenStore, stores } from "./wrap.ts";

type Lines = AsyncIterable<readonly VerbatimLine[]>;

function adopts(
  change: (
    adopt: (id: string, lines: Lines) => Promise<void>,
    id: string,
    lines: Lines,
    store: JournalStore,
  ) => Promise<void>,
): OpenInMemory {
  return stores((store) => ({ adopt: (id, lines) => change((...given) => store.adopt!(...given), id, lines, store) }));
}

async function* only(...lines: readonly VerbatimLine[]): AsyncGenerator<readonly VerbatimLine[]> {
  yield lines;
}

async function allOf(lines: Lines): Promise<VerbatimLine[]> {
  return (await Array.fromAsync(lines)).flat();
}

/** Faults in adopting sessions. */
export const brokenAdopting: readonly BrokenStore[] = [
  {
    name: "loses the last line that it takes over",
    open: adopts(async (adopt, id, lines) => {
      const found = await allOf(lines);
      await adopt(id, only(...(found.length > 1 ? found.slice(0, -1) : found)));
    }),
  },
  {
    name: "takes over all epochs as one",
    open: adopts(async (adopt, id, lines) => {
      const found = await allOf(lines);
      const flat = found.map(({ record, bytes }, index) =>
        index > 0 && record.kind === "segment" ? { record: { ...record, segment: 0 }, bytes } : { record, bytes },
      );
      await adopt(id, only(...flat));
    }),
  },
  {
    name: "shows a session while it takes it over",
    open: adopts(async (adopt, id, lines, store) => {
      const seen: VerbatimLine[] = [];
      for await (const some of lines) {
        seen.push(...some);
        if (await store.has(id)) await store.delete(id);
        await adopt(id, only(...seen));
      }
      if (seen.length === 0) await adopt(id, only());
    }),
  },
  {
    name: "keeps what it has taken over when the rest does not come",
    open: adopts(async (adopt, id, lines) => {
      const seen: VerbatimLine[] = [];
      try {
        for await (const some of lines) seen.push(...some);
      } catch (error) {
        await adopt(id, only(...seen));
        throw error;
      }
      await adopt(id, only(...seen));
    }),
  },
  {
    name: "takes over an id that is taken",
    open: adopts(async (adopt, id, lines, store) => {
      if ((await store.has(id)) && (await store.holder(id)) === null) await store.delete(id);
      await adopt(id, lines);
    }),
  },
  {
    name: "puts lines that it takes over into order",
    open: adopts(async (adopt, id, lines) => {
      const found = await allOf(lines);
      await adopt(id, only(...found.toSorted((a, b) => a.record.seq - b.record.seq)));
    }),
  },
  {
    name: "forgets the keys of what it has taken over",
    open: stores((store) => {
      const adopted = new Set<string>();
      return {
        async adopt(id, lines) {
          await store.adopt!(id, lines);
          adopted.add(id);
        },
        async open(id, options) {
          const opened = await store.open(id, options);
          if (!adopted.has(id)) return opened;
          const { journal } = opened;
          const append: typeof journal.append = (records, { key: _, ...rest } = {}) => journal.append(records, rest);
          return {
            ...opened,
            journal: new Proxy(journal, {
              get(target, name) {
                if (name === "append") return append;
                const value: unknown = Reflect.get(target, name, target);
                return typeof value === "function" ? value.bind(target) : value;
              },
            }),
          };
        },
      };
    }),
  },
  {
    name: "lists what it has taken over as closed",
    open: stores((store) => {
      const adopted = new Set<string>();
      return {
        async adopt(id, lines) {
          await store.adopt!(id, lines);
          adopted.add(id);
        },
        async list(options) {
          const page = await store.list(options);
          const sessions = page.sessions.map((listed) =>
            adopted.has(listed.id) ? { ...listed, closed: true } : listed,
          );
          return { ...page, sessions };
        },
      };
    }),
  },
];
