import type { Json } from "../journal/record.ts";
import type { AppStateRecord } from "./records/records.ts";
import { deepFreeze } from "./snapshot.ts";

/** What the application keeps beside its messages: by name, the last value. It is part of the conversation. */
export class AppState {
  readonly #values = new Map<string, Json>();

  clear(): void {
    this.#values.clear();
  }

  set({ name, value }: Pick<AppStateRecord, "name" | "value">): void {
    this.#values.set(name, deepFreeze(value));
  }

  /** An earlier part of the conversation may have had other values than now. */
  get isUsed(): boolean {
    return this.#values.size > 0;
  }

  get current(): Readonly<Record<string, Json>> {
    return Object.fromEntries([...this.#values].filter(([, value]) => value !== null));
  }

  /** The records that carry it into a new epoch. If all values are gone, one of them stays, to say that there were. */
  saved(): AppStateRecord[] {
    const all = [...this.#values].map(
      ([name, value]): AppStateRecord => ({ kind: "state", name, value, carried: true }),
    );
    const living = all.filter(({ value }) => value !== null);
    return living.length > 0 ? living : all.slice(-1);
  }
}
