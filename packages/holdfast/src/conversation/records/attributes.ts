import type { Json } from "../../journal/record.ts";

/** Another session, and the call in it that started this one. */
export interface Link {
  readonly session: string;
  readonly call?: string;
}

export interface Attributes {
  readonly title: string;
  readonly cwd?: string;
  readonly dialect: string;
  readonly app?: string;
  readonly labels: Record<string, string>;
  readonly parent?: Link;
  readonly forkedFrom?: { readonly session: string; readonly at: string };
  readonly notes: Record<string, Json>;
}

/** The longest path that systems support. A longer one cannot name a folder, so it is not looked up. */
export const ATTRIBUTE_CHARS_MAX = 4096;
/** All of a session's labels together, names included. */
export const LABELS_CHARS_MAX = 16 * 1024;
