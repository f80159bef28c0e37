/** What the test Workers use of the runtime. */
declare module "cloudflare:workers" {
  interface Storage {
    readonly sql: {
      exec(query: string, ...values: unknown[]): { toArray(): Record<string, never>[] } & Iterable<never>;
    };
    transactionSync<T>(work: () => T): T;
    sync(): Promise<void>;
    setAlarm(atMs: number): Promise<void>;
    deleteAlarm(): Promise<void>;
  }

  export abstract class DurableObject {
    protected readonly ctx: {
      readonly id: { toString(): string };
      readonly storage: Storage;
      abort(why?: string): void;
    };
  }
}
