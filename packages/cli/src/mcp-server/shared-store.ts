import type { Store } from "holdfast";
import type { Config } from "../config.ts";
import { placeWithoutStore } from "../store/address.ts";
import { addressOf, noStore, type OpenedStore, openBoth } from "../store/open.ts";

/**
 * The configured store, open only while a call uses it: between calls, a server that runs for days holds no file and no
 * connection, and it notices a store that was created or replaced meanwhile.
 */
export class SharedStore {
  readonly #config: Config;
  #current: { readonly opened: Promise<OpenedStore>; users: number } | null = null;

  constructor(config: Config) {
    this.#config = config;
  }

  /** Throws CommandError STORE_NOT_FOUND if there is no store yet: reading creates none. */
  async use<T>(work: (store: Store) => Promise<T>): Promise<T> {
    this.#current ??= { opened: this.#open(), users: 0 };
    const current = this.#current;
    current.users += 1;
    try {
      const { store } = await current.opened;
      return await work(store);
    } finally {
      current.users -= 1;
      if (current.users === 0) {
        if (this.#current === current) this.#current = null;
        await current.opened.then(
          (opened) => opened[Symbol.asyncDispose](),
          // The call has reported it.
          () => undefined,
        );
      }
    }
  }

  async #open(): Promise<OpenedStore> {
    const address = await addressOf(this.#config);
    const place = placeWithoutStore(address);
    return place === null ? openBoth(address, "holdfast mcp serve", this.#config) : noStore(place);
  }
}
