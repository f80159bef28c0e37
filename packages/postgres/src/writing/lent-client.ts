import type { HoldfastError } from "holdfast";
import { notSupported } from "holdfast/internal";
import type { PoolClient } from "pg";

/** What an application may use without a trace on the JavaScript side of its connection. */
const TRACELESS = new Set<PropertyKey>([
  "query",
  "escapeIdentifier",
  "escapeLiteral",
  "processID",
  "constructor",
  "then",
]);

/** White space, comments and empty statements before the first word. Comments can be nested, to a depth people use. */
const BEFORE = String.raw`(?:[\s;]|--[^\n]*(?:\n|$)|/\*(?:[^*/]|\*(?!/)|/(?!\*)|/\*(?:[^*]|\*(?!/))*\*/)*\*/)*`;
const ENDS = "BEGIN|START\\s+TRANSACTION|COMMIT|END|ABORT|PREPARE\\s+TRANSACTION";
const ROLLBACK = "ROLLBACK(?!(?:\\s+(?:WORK|TRANSACTION))?\\s+TO\\b)";
/** Begins or ends a transaction, which savepoints do not. Further statements of the same text are not looked at. */
const TRANSACTION_CONTROL = new RegExp(`^${BEFORE}(?:${ENDS}|${ROLLBACK})\\b`, "i");

/**
 * A connection of a pool in the application's hands, inside a transaction of the store's. It can be used for anything
 * but to give it back, which people and libraries do by habit after each use: others would get it in the middle of
 * the transaction, and their acknowledged records would be rolled back with it.
 */
export class LentClient {
  readonly client: PoolClient;
  readonly #name: string;
  #isOver = false;
  #refused: HoldfastError | null = null;
  #leavesTrace = false;

  /** `name` of the store, for messages. */
  constructor(client: PoolClient, name: string) {
    this.#name = name;
    // What the application sets goes to this object, not to the connection.
    const own = Object.assign(Object.create(client) as PoolClient, {
      query: (...given: unknown[]): unknown => this.#query(client, given),
      release: () => undefined,
      end: async () => undefined,
    });
    const lent = new Proxy(own, {
      get: (_, property) => {
        if (Object.hasOwn(own, property)) return Reflect.get(own, property);
        const value = Reflect.get(client, property) as unknown;
        if (typeof property === "symbol" || property === "constructor") return value;
        if (!TRACELESS.has(property)) this.#leavesTrace = true;
        if (typeof value !== "function") return value;
        return (...given: unknown[]): unknown => {
          if (this.#isOver) throw this.#over();
          const result = Reflect.apply(value, client, given) as unknown;
          // Such as `on`, which returns its object.
          return result === client ? lent : result;
        };
      },
    });
    this.client = lent;
  }

  /** The application has added listeners or parsers, perhaps: the connection must not be used again. */
  get leavesTrace(): boolean {
    return this.#leavesTrace;
  }

  /** From now on the client is refused. Throws NOT_SUPPORTED if a statement was, even if the application ignored it. */
  takeBack(): void {
    this.#isOver = true;
    if (this.#refused) throw this.#refused;
  }

  #query(client: PoolClient, given: unknown[]): unknown {
    const [first] = given;
    const { text, submit } = (typeof first === "string" ? { text: first } : (first ?? {})) as {
      readonly text?: unknown;
      readonly submit?: unknown;
    };
    let refusal: HoldfastError | null = null;
    if (this.#isOver) refusal = this.#over();
    else if (typeof text === "string" && TRANSACTION_CONTROL.test(text)) refusal = this.#refused = this.#control();
    if (!refusal) return Reflect.apply(client.query, client, given);
    // As the driver does it: only a query without a callback of its own returns a promise.
    if (typeof submit === "function" || given.some((one) => typeof one === "function")) throw refusal;
    return Promise.reject(refusal);
  }

  #over(): HoldfastError {
    return notSupported(
      "client for this any more: its transaction is over",
      this.#name,
      "Use the client only until the function that was given it has returned.",
    );
  }

  #control(): HoldfastError {
    return notSupported(
      "BEGIN, COMMIT or ROLLBACK inside a transaction",
      this.#name,
      "The store begins and ends the transaction itself, and commits it with the record. For a part of it, use a savepoint; to roll everything back, throw an error.",
    );
  }
}
