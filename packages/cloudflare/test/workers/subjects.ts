import { openDurableObjectStore } from "@holdfast/cloudflare";
import {
  memorySubject,
  noteSummariser,
  type Place,
  type Step,
  type Subject,
  type SubjectCapabilities,
  type SubjectOptions,
} from "@holdfast/testkit";
import type { JournalStore } from "holdfast/store";

type Context = Parameters<typeof openDurableObjectStore>[0];

export const subjectNames = ["durable object", "memory"] as const;
export type SubjectName = (typeof subjectNames)[number];

const capabilities: SubjectCapabilities = {
  durability: "power",
  lease: "process",
  sync: false,
  shared: false,
  pack: false,
  dies: true,
};

/** `ctx`: of the object in which the case runs. To know only which cases there are, none is needed. */
export function subjectNamed(name: SubjectName, ctx: Context | null): Subject {
  if (name === "memory") return memorySubject();
  return { name, capabilities, fresh: async () => new ObjectPlace(ctx!) };
}

class ObjectPlace implements Place {
  readonly #ctx: Context;
  #life: Life;

  constructor(ctx: Context) {
    this.#ctx = ctx;
    this.#life = new Life(ctx);
  }

  open(options?: SubjectOptions): Promise<JournalStore> {
    return openDurableObjectStore(this.#life.ctx, options);
  }

  /**
   * As the store sees it: its memory is gone, and the database has what was acknowledged. (A case cannot outlive the
   * object it runs in. test/kill kills real ones.)
   */
  async writeAndDie(id: string, steps: readonly Step[]): Promise<void> {
    const store = await this.open({ summariser: noteSummariser });
    const { journal } = await store.open(id);
    for (const { records, key } of steps) await journal.append(records, key === undefined ? {} : { key });
    this.#life.isOver = true;
    this.#life = new Life(this.#ctx);
  }

  async remove(): Promise<void> {}
}

/** The object's context until it dies: then nothing reaches the database any more. */
class Life {
  readonly ctx: Context;
  isOver = false;

  constructor({ id, storage }: Context) {
    const alive = (): void => {
      if (this.isOver) throw new Error("the object is dead");
    };
    this.ctx = {
      id,
      storage: {
        sql: {
          exec: (query, ...values) => {
            alive();
            return storage.sql.exec(query, ...values);
          },
        },
        transactionSync: (work) => storage.transactionSync(work),
        sync: async () => {
          alive();
          await storage.sync();
        },
      },
    };
  }
}
