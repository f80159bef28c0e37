import type pg from "pg";

interface Statement {
  readonly text: string;
}

/** Lets `around` see each statement that goes over this pool, and decide when it is sent and answered. */
export function intercept(
  pool: pg.Pool,
  around: (statement: Statement, send: () => Promise<unknown>) => Promise<unknown>,
): void {
  pool.on("connect", (client) => {
    const query = client.query.bind(client) as (...args: unknown[]) => Promise<unknown>;
    const intercepted = (...args: unknown[]): Promise<unknown> => {
      const [statement] = args as [Statement];
      return typeof statement === "object" && !("submit" in statement)
        ? around(statement, () => query(...args))
        : query(...args);
    };
    Object.assign(client, { query: intercepted });
  });
}
