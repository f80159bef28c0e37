import type { Link } from "../conversation/records/attributes.ts";
import { HoldfastError } from "../errors.ts";
import type { ListHints, ListOptions } from "../journal/contract.ts";
import type { SessionState } from "../session-state.ts";
import type { SessionRow } from "./row.ts";

export interface ListQuery {
  readonly cwd?: string;
  readonly app?: string;
  readonly parent?: string;
  readonly status?: Summary["status"];
  /** All of these labels must exist with these values. */
  readonly labels?: Readonly<Record<string, string>>;
  /** Last written at or after this time (ISO 8601). */
  readonly since?: string;
  /** Last written before this time. */
  readonly until?: string;
  /** Include sessions without a turn. */
  readonly empty?: boolean;
  /** Only sessions that cannot be read. Otherwise they are listed too, unless `status` or `labels` is given. */
  readonly unreadable?: true;
  /** Default 100. */
  readonly limit?: number;
  /** `next` of the previous page. */
  readonly after?: string;
}

export interface Summary {
  readonly id: string;
  readonly title: string;
  readonly cwd?: string;
  readonly app?: string;
  /** When the session was last written to. */
  readonly at: string;
  readonly turns: number;
  readonly queued: number;
  /** The same as `state` of the session when it is read. */
  readonly status: SessionState;
  /** When a paused session continues by itself. */
  readonly wakeAt?: string;
  /** How often workers and people tried to continue its last turn since its last progress. Absent if never. */
  readonly attempts?: number;
  readonly labels?: Readonly<Record<string, string>>;
  readonly parent?: Link;
  /**
   * Why the session cannot be read now (it belongs to another user, its disk fails). The other members show what was
   * last known, if anything.
   */
  readonly unreadable?: { readonly code: string; readonly message: string };
}

/** A session in the trash. */
export interface TrashedSession extends Pick<Summary, "id" | "title" | "cwd" | "app" | "turns" | "queued" | "parent"> {
  /** When it was deleted. */
  readonly trashedAt: string;
}

const LIMIT = 100;
/** Sort before and after every time. */
const EVER = "";
const NEVER = "\uffff";

/** A checked query, in terms of rows. */
export interface SessionFilter {
  /** Conditions the store must apply. */
  readonly where: NonNullable<ListOptions["where"]>;
  /** Conditions the store may apply. */
  readonly hints: ListHints;
  readonly status: Summary["status"] | undefined;
  /** The row states that can result in that status. */
  readonly states: readonly SessionRow["state"][];
  readonly labels: readonly (readonly [name: string, value: string])[];
  readonly since: string;
  readonly until: string;
  readonly empty: boolean;
  /** Only sessions that cannot be read. */
  readonly unreadable: boolean;
  readonly limit: number;
}

const STATES: Readonly<Record<Summary["status"], readonly SessionRow["state"][]>> = {
  running: ["open"],
  interrupted: ["open", "cut"],
  stopped: ["cut"],
  failed: ["open", "cut"],
  waiting: ["waiting"],
  paused: ["waiting"],
  parked: ["waiting"],
  idle: ["idle"],
};
const ALL_STATES: readonly SessionRow["state"][] = ["idle", "open", "cut", "waiting"];

/** Throws QUERY_INVALID { member } for meaningless values, instead of showing an empty list. */
export function checkQuery(query: ListQuery, realPath: (path: string) => string): SessionFilter {
  if (typeof query !== "object" || query === null) throw invalid("query", "it is not an object");
  const { cwd, app, parent, status, labels, since, until, empty = false, limit = LIMIT, after } = query;
  const { unreadable = false } = query;
  const where: Record<string, string> = {};
  if (cwd !== undefined) {
    if (typeof cwd !== "string" || cwd === "" || cwd.includes("\0")) throw invalid("cwd", "it is not a folder path");
    where["cwd"] = realPath(cwd);
  }
  if (app !== undefined) where["app"] = text("app", app);
  if (parent !== undefined) where["parentSession"] = text("parent", parent);
  if (after !== undefined) text("after", after);
  if (status !== undefined && !(typeof status === "string" && Object.hasOwn(STATES, status)))
    throw invalid("status", `it must be one of ${Object.keys(STATES).join(", ")}`);
  if (typeof empty !== "boolean") throw invalid("empty", "it must be true or false");
  if (typeof unreadable !== "boolean") throw invalid("unreadable", "it must be true or false");
  if (!Number.isSafeInteger(limit) || limit < 1) throw invalid("limit", "it must be a whole number of at least 1");
  const states = status === undefined ? ALL_STATES : STATES[status];
  // Both are rare, and the store skips the others faster.
  if (status === "running" || states[0] === "waiting") where["state"] = states[0]!;
  const wanted = {
    where,
    status,
    states,
    labels: pairs(labels),
    since: since === undefined ? EVER : time("since", since),
    until: until === undefined ? NEVER : time("until", until),
    empty: empty || unreadable,
    unreadable,
    limit,
  };
  return { ...wanted, hints: hintsOf(wanted) };
}

/** At least one of these is set if the session has messages or queued input. */
const CONTENT = ["turns", "queued", "queue", "filled"];

/** The same in terms of a store. A row with an unknown state counts as idle, so the hint excludes the other states. */
function hintsOf({ states, labels, since, until, empty }: Omit<SessionFilter, "hints">): ListHints {
  const others = ALL_STATES.filter((state) => !states.includes(state));
  return {
    ...(since === EVER ? {} : { since }),
    ...(until === NEVER ? {} : { until }),
    ...(labels.length === 0 ? {} : { within: { labels: Object.fromEntries(labels) } }),
    ...(others.length === 0 ? {} : { noneOf: { state: others } }),
    ...(empty ? {} : { anyOf: CONTENT }),
  };
}

function text(member: string, value: unknown): string {
  if (typeof value !== "string") throw invalid(member, "it is not a string");
  return value;
}

/** In the format of records, so that times compare as strings. */
function time(member: string, value: unknown): string {
  const date = typeof value === "string" && /^\d{4}-\d\d(?:-\d\d|$)/.test(value) ? new Date(value) : null;
  if (!date || Number.isNaN(date.getTime()))
    throw invalid(member, 'it is not a time like "2026-11-15T02:30:00Z" (ISO 8601)');
  return date.toISOString();
}

function pairs(labels: unknown): [string, string][] {
  if (labels === undefined) return [];
  if (typeof labels !== "object" || labels === null || Array.isArray(labels))
    throw invalid("labels", "it is not an object of strings");
  return Object.entries(labels).map(([name, value]) => [name, text(`labels.${name.slice(0, 40)}`, value)]);
}

function invalid(member: string, why: string): HoldfastError {
  const message = `Nothing was listed: "${member}" of the query is not valid: ${why}. Nothing was touched. Correct the query.`;
  return new HoldfastError("QUERY_INVALID", message, { member });
}
