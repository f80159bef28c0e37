import type { ChildProcess } from "node:child_process";

/** A way to drive a system: for example, without and with an idempotency key. */
export interface Variant {
  readonly key: string;
  /** What is different, in words. */
  readonly words: string;
}

export interface System {
  readonly key: string;
  readonly name: string;
  /** What is installed from npm for it, pinned: the versions that the published results are of. */
  readonly packages: Readonly<Record<string, string>>;
  readonly overrides?: Readonly<Record<string, string>>;
  /** How it is driven, in words. */
  readonly driven: string;
  readonly variants: readonly Variant[];
  /** Prepares what outlives the agent (servers, builds) in this folder. */
  begin(place: Place): Promise<Running>;
}

/** Where one run takes place. */
export interface Place {
  /** Holds the agents' programs and `node_modules`. Empty otherwise. */
  readonly folder: string;
  readonly variant: string;
  /** The address of the payment service and the model. */
  readonly url: string;
}

export interface Running {
  /** Starts the agent, for the first time or again after it was killed. It leads a process group of its own. */
  start(again: boolean): ChildProcess;
  stop(): Promise<void>;
}
