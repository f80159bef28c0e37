import type { Dialect } from "../dialects/dialect.ts";
import { type DialectName, dialects, findDialect } from "../dialects/index.ts";
import { HoldfastError } from "../errors.ts";

/** The dialects that a store understands: the built-in ones, and the application's own. */
export class KnownDialects {
  // biome-ignore lint/suspicious/noExplicitAny: the type of the messages is the application's to say.
  readonly #own: Map<string, Dialect<any>>;

  // biome-ignore lint/suspicious/noExplicitAny: the type of the messages is the application's to say.
  constructor(own: readonly Dialect<any>[]) {
    this.#own = new Map(own.map((dialect) => [dialect.name, dialect]));
  }

  /** Null if there is none of this name. */
  // biome-ignore lint/suspicious/noExplicitAny: the type of the messages is the application's to say.
  readonly find = (name: string): Dialect<any> | null => this.#own.get(name) ?? findDialect(name);

  /** The dialect that the options name; undefined if they name none. Throws DIALECT_UNKNOWN. */
  named<M>(given: DialectName | Dialect<M> | null | undefined): Dialect<M> | undefined {
    if (given === undefined || given === null || typeof given === "object") return given ?? undefined;
    const found = this.find(given);
    if (!found) throw dialectUnknown(given);
    return found;
  }

  /** The application's own dialect: from now on, its sessions can also be listed, searched and read. */
  remember<M>(dialect: Dialect<M>): void {
    if (this.find(dialect.name) !== dialect) this.#own.set(dialect.name, dialect);
  }
}

export function dialectUnknown(given: unknown): HoldfastError {
  const name = String(given).slice(0, 80);
  const message =
    `Unknown dialect ${JSON.stringify(name)}. Nothing was created or opened. ` +
    `Name a built-in one (${Object.keys(dialects).join(", ")}), or pass the dialect itself.`;
  return new HoldfastError("DIALECT_UNKNOWN", message, { dialect: name });
}

export function otherDialect(recorded: string, named: string): HoldfastError {
  const message =
    `The session uses the dialect ${JSON.stringify(recorded.slice(0, 80))}, not ${JSON.stringify(named)}. ` +
    "Nothing was touched. Name the session's own dialect, or none.";
  return new HoldfastError("DIALECT_UNKNOWN", message, { dialect: recorded, named });
}
