import { Memory, openMemoryStore } from "holdfast/internal";
import type { JournalStore } from "holdfast/store";
import { noteSummariser } from "./notes.ts";
import type { Place, Subject, SubjectCapabilities, SubjectOptions } from "./subject.ts";

export type OpenInMemory = (memory: Memory, options: SubjectOptions) => Promise<JournalStore>;

export const memoryCapabilities: SubjectCapabilities = {
  durability: "none",
  lease: "process",
  sync: true,
  shared: false,
  pack: false,
  dies: true,
};

/** The memory store, or the store that `open` makes of it. */
export function memorySubject(
  name = "memory",
  open: OpenInMemory = (memory, options) => openMemoryStore({ memory, ...options }),
  capabilities: SubjectCapabilities = memoryCapabilities,
): Subject {
  return { name, capabilities, fresh: async () => new MemoryPlace(open) };
}

class MemoryPlace implements Place {
  readonly #memory = new Memory();
  readonly #open: OpenInMemory;

  constructor(open: OpenInMemory) {
    this.#open = open;
  }

  open(options: SubjectOptions = {}): Promise<JournalStore> {
    return this.#open(this.#memory, options);
  }

  async writeAndDie(...[id, steps]: Parameters<NonNullable<Place["writeAndDie"]>>): Promise<void> {
    const store = await this.open({ summariser: noteSummariser });
    const { journal } = await store.open(id);
    for (const { records, key } of steps) await journal.append(records, key === undefined ? {} : { key });
    this.#memory.crash(id);
  }

  async remove(): Promise<void> {
    this.#memory.sessions.clear();
  }
}
