import type { TurnText } from "./turns.ts";

/** Imports a package of the peer's from its cache. */
// biome-ignore lint/suspicious/noExplicitAny: the packages are not in the workspace, so they have no types.
export type Load = (name: string) => Promise<any>;

/** Imports what is needed. That is not part of any figure. */
export type LoadStore = (load: Load) => Promise<OpenStore>;

/** Opens the store in a folder that exists. Part of what resuming and listing take. */
export type OpenStore = (folder: string) => Promise<PeerStore>;

export interface PeerStore {
  create(title: string): Promise<Writer>;
  /** All messages of the session in memory, as the next request to the model needs them. */
  resume(id: string): Promise<Resumed>;
  /** Id, title and time of every session. Returns how many there are. */
  list?(): Promise<number>;
  /** Makes a session of these turns faster than by storing them one by one. Never timed. */
  fill?(turns: Iterable<TurnText>): Promise<string>;
  close(): Promise<void>;
}

export interface Writer {
  readonly id: string;
  /** The peer's own form of a turn's messages. Not timed. Returns what stores them, one message after the other. */
  prepare(turn: TurnText): () => Promise<void>;
  /** Adds these turns faster than one by one. Never timed. */
  grow?(turns: readonly TurnText[]): Promise<void>;
  close(): Promise<void>;
}

export interface Resumed {
  readonly messages: number;
  /** Keeps what was loaded alive until the memory has been measured. */
  readonly kept: unknown;
}
