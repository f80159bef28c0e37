import type { Store } from "holdfast";
import type { Config } from "../config.ts";
import type { ResolvedModel } from "../models/resolve.ts";
import type { Trust } from "../trust/trust.ts";

/** What all conversations of a host share. */
export interface Services {
  readonly store: Store;
  readonly config: Config;
  /** Who decides on a call that no rule allows: a person; or nobody, and it is denied. */
  readonly asks: "person" | "nobody";
  readonly model: (name: string) => Promise<ResolvedModel>;
  /** Fires when the process was told to end by a signal: nothing new is begun in the time that is left. */
  readonly ending: AbortSignal;
  /** Where the whole outputs of a session's tools are kept. */
  readonly outputs: (session: string) => string;
  /** What this user has said of the sessions of this store. */
  readonly trust: Trust;
}
