import { quoteName } from "../connection/address.ts";

/** What a worker may do. Nobody changes journal lines or segment starts, and a worker can delete only derived data. */
const WORKER: Readonly<Record<string, string>> = {
  holdfast_migrations: "SELECT",
  heads: "SELECT, INSERT, UPDATE",
  workers: "SELECT, INSERT, UPDATE",
  catalogue: "SELECT, INSERT, UPDATE",
  segments: "SELECT, INSERT",
  lines: "SELECT, INSERT",
  texts: "SELECT, INSERT, UPDATE, DELETE",
  texts_changes: "SELECT, INSERT, UPDATE, DELETE",
  texts_gone: "SELECT, INSERT, UPDATE, DELETE",
  texts_messages: "SELECT, INSERT, UPDATE, DELETE",
  texts_sessions: "SELECT, INSERT, UPDATE, DELETE",
  texts_sweep: "SELECT, INSERT, UPDATE, DELETE",
};

export interface Roles {
  /**
   * Creates, resumes, deletes (to the trash), lists and searches. Cannot change or drop a table, nor change or remove a
   * line. It can create one kind of table: the partition of a month, through a function of the owner's.
   */
  readonly worker?: string;
  /** Lists, searches, reads and follows. */
  readonly reader?: string;
}

/**
 * Returns the statements that give each role only the rights it needs. Run them as the owner of the tables:
 * `for (const statement of grants("holdfast", { worker: "agents", reader: "dashboard" })) …`. The roles must exist. Use
 * the owner's role for the first start after an update, for `gc`, `dropMonths` and `holdfast copy`.
 */
export function grants(schema: string, roles: Roles): string[] {
  const name = quoteName(schema);
  return [
    ...(roles.worker === undefined ? [] : grantsTo(name, quoteName(roles.worker), (table) => WORKER[table]!)),
    ...(roles.worker === undefined
      ? []
      : [`GRANT EXECUTE ON FUNCTION ${name}.make_partition(date) TO ${quoteName(roles.worker)}`]),
    ...(roles.reader === undefined ? [] : grantsTo(name, quoteName(roles.reader), () => "SELECT")),
  ];
}

function grantsTo(schema: string, role: string, rights: (table: string) => string): string[] {
  return [
    `GRANT USAGE ON SCHEMA ${schema} TO ${role}`,
    ...Object.keys(WORKER).map((table) => `GRANT ${rights(table)} ON ${schema}.${table} TO ${role}`),
  ];
}
