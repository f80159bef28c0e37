import type { FoundSession } from "../diagnosis/sessions.ts";
import type { Door } from "../files/door.ts";
import type { Alarm } from "./alarm.ts";

/** Where sessions are kept. */
export interface Keeper {
  /** The folder of a session; null if the store has no place for files. Creates it. */
  folderOf(agent: string, session: string): string | null;
  /** Whether files are kept, or only conversations. */
  readonly keepsFiles: boolean;
  /** Brings its conversation into the store. */
  bring(found: FoundSession, door: Door): Promise<void>;
}

export interface WatchListeners {
  readonly alarm: (alarm: Alarm) => void;
  /** Something that keeps a session, or all of them, from being kept. `key`: of what is the same trouble. */
  readonly trouble: (key: string, words: string) => void;
  /** That trouble is over. */
  readonly recovered: (key: string) => void;
  /** Whether an error is one of the whole store, such as a full disk: then its key. */
  readonly troubleOf: (error: unknown) => { readonly key: string | null; readonly words: string };
}

/** In milliseconds. */
export interface WatchPace {
  /** Writes that follow each other are kept together. */
  readonly settle: number;
  /** Between two looks at all files; without the system's events, `poll`. */
  readonly sweep: number;
  readonly poll: number;
  /** After the last change, until a session is compared and judged as a whole. */
  readonly quiet: number;
  /** For how long a session must be gone until it counts as deleted. */
  readonly gone: number;
}

export const PACE: WatchPace = { settle: 40, sweep: 30_000, poll: 2_000, quiet: 3_000, gone: 2_000 };
