import { quoted } from "./address.ts";

/** What a worker may add to, and change; but for the lines of journals and where segments begin, which nobody changes. Nothing of it can be removed by a worker, but what is derived. */
const WORKER: Readonly<Record<string, string>> = {
  holdfast_migrations: "SELECT",
  heads: "SELECT, INSERT, UPDATE",
  workers: "SELECT, INSERT, UPDATE",
  catalogue: "SELECT, INSERT, UPDATE",
  segments: "SELECT, INSERT",
  lines: "SELECT, INSERT",
  texts: "SELECT, INSERT, UPDATE, DELETE",
  texts_gone: "SELECT, INSERT, UPDATE, DELETE",
  texts_messages: "SELECT, INSERT, UPDATE, DELETE",
  texts_sessions: "SELECT, INSERT, UPDATE, DELETE",
};

export interface Roles {
  /** Creates, resumes, deletes (to the trash), lists, searches. Cannot make, change or drop a table, nor change or remove a line. */
  readonly worker?: string;
  /** Lists, searches, reads and follows. */
  readonly reader?: string;
}

/**
 * The statements that give roles no more than they need, for whoever owns the tables to run: `for (const statement of grants("holdfast", { worker: "agents", reader: "dashboard" })) …`. The roles must be there. The owner's role is for the
 * first start after an update, for `gc`, for `dropMonths` and for `holdfast copy`.
 */
export function grants(schema: string, roles: Roles): string[] {
  const name = quoted(schema);
  return [
    ...(roles.worker === undefined ? [] : grantsTo(name, quoted(roles.worker), (table) => WORKER[table]!)),
    ...(roles.reader === undefined ? [] : grantsTo(name, quoted(roles.reader), () => "SELECT")),
  ];
}

function grantsTo(schema: string, role: string, rights: (table: string) => string): string[] {
  return [
    `GRANT USAGE ON SCHEMA ${schema} TO ${role}`,
    ...Object.keys(WORKER).map((table) => `GRANT ${rights(table)} ON ${schema}.${table} TO ${role}`),
  ];
}
