import { createHash, randomBytes } from "node:crypto";
import { closeSync, constants, fstatSync, openSync, readSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { OpenCall, ToolProcess } from "holdfast";
import { findOwnFolder, makeOwnFolder, whyNotPrivate } from "../own-folder.ts";
import { here, stateFolder, storeIdentity, type UserEnvironment } from "./state-folder.ts";

/**
 * What this user has said about sessions, and what this user's agent has done in them. Kept outside the journal,
 * because anyone may have written that. A session from elsewhere (a store someone sent, a copy, a backup, a shared
 * database) brings words and data, never authority.
 */
export class Trust {
  /** Why saved permissions are ignored, for people. */
  readonly warnings: string[] = [];
  readonly #root: string | null;
  readonly #names: readonly string[];
  readonly #store: string | null;
  readonly #sessions = new Map<string, SessionTrust>();

  constructor(storeUrl: string, around: UserEnvironment = here) {
    this.#store = storeIdentity(storeUrl);
    this.#root = this.#store === null ? null : stateFolder(around);
    this.#names = ["holdfast", "trust", this.#store ?? ""];
  }

  /** Returns the same object for the same session. */
  of(session: string): SessionTrust {
    const known = this.#sessions.get(session);
    if (known) return known;
    const trust = new SessionTrust(this.#read(session), (kept) => this.#write(session, kept));
    this.#sessions.set(session, trust);
    return trust;
  }

  /** Call this when a session is deleted for good. */
  forget(session: string): void {
    this.#sessions.delete(session);
    const folder = this.#folder();
    if (folder !== null && ID.test(session)) rmSync(join(folder, `${session}.json`), { force: true });
  }

  /** Null if there is none yet, or it is unsafe to use. */
  #folder(): string | null {
    if (this.#root === null) return null;
    const found = findOwnFolder(this.#root, this.#names);
    if (found === null || typeof found === "string") return found;
    this.#warn(`${found.why}: the permissions saved there are ignored`);
    return null;
  }

  #read(session: string): StoredTrust {
    const folder = ID.test(session) ? this.#folder() : null;
    if (folder === null) return NOTHING;
    const path = join(folder, `${session}.json`);
    const { text, why } = readOwnFile(path);
    if (why !== undefined) this.#warn(`${path} ${why}: the permissions saved in it are ignored`);
    if (text === undefined) return NOTHING;
    const kept = keptIn(text, session);
    if (kept === null) this.#warn(`${path} is not a valid permissions file: the permissions saved in it are ignored`);
    return kept ?? NOTHING;
  }

  /** Null if saved, else why not. Not synced: after a power cut the user is asked again. */
  #write(session: string, kept: StoredTrust): string | null {
    if (this.#store === null || !ID.test(session)) return null;
    if (this.#root === null) return "you have no home folder";
    try {
      const found = findOwnFolder(this.#root, this.#names);
      if (found !== null && typeof found !== "string") return found.why;
      const folder = found ?? makeOwnFolder(this.#root, this.#names);
      const temporary = join(folder, `.${session}.${randomBytes(6).toString("hex")}.tmp`);
      try {
        writeFileSync(temporary, `${JSON.stringify({ version: 1, session, ...kept })}\n`, { flag: "wx", mode: 0o600 });
        renameSync(temporary, join(folder, `${session}.json`));
      } finally {
        rmSync(temporary, { force: true });
      }
      return null;
    } catch (error) {
      // A full or read-only home must not stop the work: what cannot be saved applies to this process only.
      if (error instanceof Error && "code" in error) return error.message;
      throw error;
    }
  }

  #warn(words: string): void {
    if (!this.warnings.includes(`${words}.`)) this.warnings.push(`${words}.`);
  }
}

const ID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const FILE_BYTES_MAX = 4 * 1024 * 1024;
/** The maximum length of each list; for older entries the user is asked again. */
const LIST_MAX = 1000;

interface StoredTrust {
  /** Where this user works in the session; null if nowhere yet. */
  readonly folder: string | null;
  readonly allow: readonly string[];
  /** Digests of calls that this user approved. */
  readonly approved: readonly string[];
  /** Processes that this user's agent started. */
  readonly processes: readonly string[];
  /** A server may finish an interrupted turn of this session by itself. */
  readonly finishes: boolean;
  /** The turn that this user's server has handed over to its next start. */
  readonly handedOver: number | null;
}

const NOTHING: StoredTrust = {
  folder: null,
  allow: [],
  approved: [],
  processes: [],
  finishes: false,
  handedOver: null,
};

/** What this user has said about one session. */
export class SessionTrust {
  readonly #write: (kept: StoredTrust) => string | null;
  #kept: StoredTrust;
  #unkept: string | null = null;

  constructor(kept: StoredTrust, write: (kept: StoredTrust) => string | null) {
    this.#kept = kept;
    this.#write = write;
  }

  /** The folder in which this user started or confirmed the session; null if this user has not worked with it here. */
  get folder(): string | null {
    return this.#kept.folder;
  }

  /** Rules this user gave "for the rest of the session". */
  get rules(): readonly string[] {
    return this.#kept.allow;
  }

  /** Why the last change applies to this process only; null if it is saved. */
  get unkept(): string | null {
    return this.#unkept;
  }

  /** Whether a server may finish an interrupted turn of this session by itself. */
  get finishes(): boolean {
    return this.#kept.finishes;
  }

  setFinishes(finishes: boolean): void {
    if (finishes !== this.finishes) this.#change({ finishes });
  }

  /** The turn that a server of this user handed over, or was about to: its next start continues it. */
  get handedOver(): number | null {
    return this.#kept.handedOver;
  }

  setHandedOver(turn: number | null): void {
    if (turn !== this.handedOver) this.#change({ handedOver: turn });
  }

  workIn(folder: string): void {
    if (folder !== this.folder) this.#change({ folder });
  }

  allow(rule: string): void {
    if (!this.rules.includes(rule)) this.#change({ allow: [...this.rules, rule].slice(-LIST_MAX) });
  }

  approve(call: JudgedCall): void {
    if (!this.hasApproved(call)) this.#change({ approved: [...this.#kept.approved, digestOf(call)].slice(-LIST_MAX) });
  }

  /** Whether this user approved exactly this call: this message, tool and input. */
  hasApproved(call: JudgedCall): boolean {
    return this.#kept.approved.includes(digestOf(call));
  }

  started(process: ToolProcess): void {
    this.#change({ processes: [...this.#kept.processes, nameOf(process)].slice(-LIST_MAX) });
  }

  /** Whether this user's agent started it for this session. Anyone can learn the pid and start time of a process. */
  hasStarted(process: ToolProcess): boolean {
    return this.#kept.processes.includes(nameOf(process));
  }

  #change(change: Partial<StoredTrust>): void {
    this.#kept = { ...this.#kept, ...change };
    this.#unkept = this.#write(this.#kept);
  }
}

type JudgedCall = Pick<OpenCall, "id" | "message" | "name" | "input">;

function digestOf({ id, message, name, input }: JudgedCall): string {
  return createHash("sha256")
    .update(JSON.stringify([id, message, name, canonical(input)]))
    .digest("base64url");
}

function nameOf({ pid, started, group }: ToolProcess): string {
  return JSON.stringify([pid, started, group === true]);
}

/** The same text for the same JSON, regardless of member order. */
export function canonical(value: unknown): string {
  return (
    JSON.stringify(value, (_, member: unknown) =>
      typeof member === "object" && member !== null && !Array.isArray(member)
        ? Object.fromEntries(Object.entries(member).sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)))
        : member,
    ) ?? ""
  );
}

/** Null if it is not what `Trust` writes. */
function keptIn(text: string, session: string): StoredTrust | null {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
  if (typeof parsed !== "object" || parsed === null) return null;
  const found = parsed as Record<string, unknown>;
  const { folder } = found;
  if (found["version"] !== 1 || found["session"] !== session) return null;
  if (folder !== null && typeof folder !== "string") return null;
  const lists = [found["allow"], found["approved"], found["processes"]];
  const [allow, approved, processes] = lists.map((list) =>
    Array.isArray(list) && list.every((one) => typeof one === "string") ? (list as string[]) : null,
  );
  const finishes = found["finishes"] === true;
  const turn = found["handedOver"];
  const handedOver = typeof turn === "number" ? turn : null;
  return allow && approved && processes ? { folder, allow, approved, processes, finishes, handedOver } : null;
}

const FLAGS = constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0);

/** Reads a private file of this user; `why` says why not, neither if there is none. */
export function readOwnFile(path: string): { readonly text?: string; readonly why?: string } {
  let file: number;
  try {
    file = openSync(path, FLAGS);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT") return {};
    if (code === "ELOOP" || code === "EMLINK") return { why: "is a symbolic link" };
    if (code === undefined) throw error;
    return { why: `could not be read (${code})` };
  }
  try {
    const found = fstatSync(file);
    if (!found.isFile() || found.nlink > 1) return { why: "is not a plain file" };
    const why = whyNotPrivate(found);
    if (why !== null) return { why };
    if (found.size > FILE_BYTES_MAX) return { why: "is too large" };
    const bytes = Buffer.alloc(found.size);
    let length = 0;
    while (length < bytes.length) {
      const count = readSync(file, bytes, length, bytes.length - length, length);
      if (count === 0) break;
      length += count;
    }
    return { text: bytes.toString("utf8", 0, length) };
  } finally {
    closeSync(file);
  }
}
