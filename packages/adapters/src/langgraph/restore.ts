import type { SerializerProtocol } from "@langchain/langgraph-checkpoint";
import { HoldfastError } from "holdfast";
import { type KnownItems, remember } from "./capture.ts";
import type { StoredValue } from "./records.ts";
import type { ThreadState } from "./state.ts";

/** Makes values from what is stored: each time another copy, which belongs to the caller. */
export class Restorer {
  readonly #serde: SerializerProtocol;
  readonly #known: KnownItems;
  readonly #state: ThreadState;

  constructor(serde: SerializerProtocol, known: KnownItems, state: ThreadState) {
    this.#serde = serde;
    this.#known = known;
    this.#state = state;
  }

  /** Throws JOURNAL_UNREADABLE if a part of it is lost. */
  async restore(stored: StoredValue): Promise<unknown> {
    if ("j" in stored) return this.#serde.loadsTyped("json", JSON.stringify(stored.j));
    if ("t" in stored) return this.#serde.loadsTyped(stored.t, new Uint8Array(Buffer.from(stored.b, "base64")));
    if ("o" in stored) return this.#members(stored.o);
    const [list, length] = stored.l;
    const values = this.#state.list(list)?.slice(0, length) ?? [];
    if (values.length < length) throw lost("a list", { list, length, found: values.length });
    const items = await Promise.all(values.map((value) => this.restore(value)));
    items.forEach((item, index) => {
      remember(this.#known, item, { list, index, value: values[index]! });
    });
    return items;
  }

  async #members(members: Readonly<Record<string, StoredValue>>): Promise<Record<string, unknown>> {
    const restored = Object.entries(members).map(async ([name, value]) => [name, await this.restore(value)] as const);
    return Object.fromEntries(await Promise.all(restored));
  }
}

export function lost(what: string, facts: Record<string, string | number>): HoldfastError {
  const message = `The state of this checkpoint cannot be restored: ${what} depends on a record that is damaged or missing. Nothing was changed. Other checkpoints of the thread may be whole: list them, and run "holdfast verify" to see what is damaged.`;
  return new HoldfastError("JOURNAL_UNREADABLE", message, facts);
}
