/** What the Workers of the tests and of the example use of the runtime; `@cloudflare/workers-types` has all of it. */
declare module "cloudflare:workers" {
  interface Context {
    readonly id: { toString(): string };
    readonly storage: {
      readonly sql: {
        exec(query: string, ...values: unknown[]): { toArray(): Record<string, never>[] } & Iterable<never>;
      };
      transactionSync<T>(work: () => T): T;
      sync(): Promise<void>;
      getAlarm(): Promise<number | null>;
      setAlarm(atMs: number): Promise<void>;
      deleteAlarm(): Promise<void>;
    };
    blockConcurrencyWhile<T>(work: () => Promise<T>): Promise<T>;
    abort(reason?: string): void;
  }

  export abstract class DurableObject {
    protected readonly ctx: Context;
    protected readonly env: unknown;
    constructor(ctx: Context, env: unknown);
    fetch?(request: Request): Promise<Response>;
    alarm?(): Promise<void>;
  }
}
