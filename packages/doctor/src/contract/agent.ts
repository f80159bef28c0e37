import type { Door } from "../files/door.ts";
import type { Plan } from "./plan.ts";
import type { Problem, ProblemKind } from "./problem.ts";
import type { SessionRecord } from "./record.ts";
import type { ConversationRules } from "./rules.ts";
import type { Transfer, WrittenSession } from "./transfer.ts";

/** What is asked of every agent. packages/doctor/README.md says how to add one. */

/** The variables of the environment that say where an agent keeps its sessions. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** One session on this machine. */
export interface SessionPlace {
  readonly agent: string;
  readonly id: string;
  /** The file that holds the conversation: a transcript, or a database. */
  readonly path: string;
  /** Whether `path` holds other sessions too. */
  readonly isShared?: boolean;
  /** Files of the session beside it, such as those of its sub-agents. */
  readonly parts: readonly string[];
  /** The folder in which the agent worked, if the place says it. */
  readonly folder?: string;
}

/** A file or folder that somebody named, before anything is known of it. */
export interface Candidate {
  readonly path: string;
  readonly isFolder: boolean;
  /** The first bytes, at most 64 KiB; of a compressed file, of what it holds. */
  readonly head: Uint8Array;
  /** The objects that the scanner finds in them. */
  readonly values: readonly unknown[];
  /** The tables of an SQLite database, with their columns; null for other files. */
  readonly tables: ReadonlyMap<string, readonly string[]> | null;
  /** The names in a folder, at most 1,000. */
  readonly names: readonly string[];
}

/** A record, or a problem that no single record shows. */
export type ReadItem =
  | { readonly type: "record"; readonly record: SessionRecord }
  | { readonly type: "problem"; readonly problem: Problem };

export interface Agent {
  /** As in `--to` and in reports. */
  readonly name: string;
  /** As people call it. */
  readonly title: string;
  /** What its command is called, so that a process of it can be recognised. */
  readonly programs?: readonly string[];
  /** Versions of the program whose sessions were read in tests. */
  readonly versions: readonly string[];
  /** The folders and files in which it keeps sessions, by its own variables and rules. They need not exist. */
  homes(environment: Environment, home: string): readonly string[];
  /** How sure it is, from 0 to 1, that this is a session of the agent, or a folder of them. By content alone. */
  detect(candidate: Candidate): number;
  /** The sessions below a path: one of the homes, a folder within, or one file. */
  find(root: string, door: Door): Iterable<SessionPlace>;
  /**
   * The records in the order of their files, with what is wrong with their text. What is opened belongs to the door,
   * and is closed with it. Nothing of a session is collected: a file may be larger than the memory.
   */
  read(session: SessionPlace, door: Door): Promise<Iterable<ReadItem>>;
  /** The command with which its user continues the session. */
  resume?(session: SessionPlace): readonly string[];
  /** How its conversations are judged. */
  readonly rules: ConversationRules;
  /** What repairs the session; null if nothing is to be done. Reads only. */
  plan?(session: SessionPlace, door: Door): Promise<Plan | null>;
  /** The kinds that `plan` knows a repair for; of the others, the diagnosis says that there is none. */
  readonly repairs?: ReadonlySet<ProblemKind>;
  /**
   * A session of this agent made out of a conversation, as data; the door is for what the agent keeps already. Throws
   * `Refused`. Without it, nothing can be moved to this agent.
   */
  write?(transfer: Transfer, environment: Environment, home: string, door: Door): WrittenSession;
}
