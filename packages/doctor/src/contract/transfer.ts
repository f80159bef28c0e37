/** A conversation on its way from one agent to another, as plain data. */

export type SpokenPart =
  | { readonly type: "text"; readonly text: string }
  /** `data`: in base64. */
  | { readonly type: "image"; readonly mediaType: string; readonly data: string };

export interface TransferCall {
  readonly type: "call";
  /** At most 40 letters, digits, `_` and `-`, which every provider accepts; no two calls share one. */
  readonly id: string;
  readonly name: string;
  readonly input: Readonly<Record<string, unknown>>;
  readonly result: { readonly parts: readonly SpokenPart[]; readonly isError: boolean };
}

export type ModelPart =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "reasoning"; readonly text: string }
  | TransferCall;

/** What a person said; or what the model said and did in one answer, each call with its result. */
export type TransferStep =
  | { readonly kind: "user"; readonly parts: readonly SpokenPart[] }
  | { readonly kind: "model"; readonly parts: readonly ModelPart[] };

export interface Transfer {
  /** A UUID: what is made for the new session is derived from it, and so the same each time. */
  readonly id: string;
  /** The folder in which the agent is to go on, absolute and without links. */
  readonly cwd: string;
  readonly title: string | null;
  /** When it is moved, in milliseconds since 1970. Agents delete and sort their sessions by their times. */
  readonly at: number;
  readonly steps: readonly TransferStep[];
}

export interface NewFile {
  /** Where the agent looks for it; null if it has no place for files of others. */
  readonly path: string | null;
  /** Its path in a folder that the user names; null if it only says something to the agent about its own folder. */
  readonly name: string | null;
  readonly text: string;
}

/** A session in the format of an agent, not yet written. */
export interface WrittenSession {
  /** As the agent calls it. */
  readonly id: string;
  /** In the order in which they are to appear: the agent finds the session by the last one. */
  readonly files: readonly NewFile[];
  /** What to type, in the folder of the session; `{file}` stands for the path of the last file. */
  readonly resume: readonly (readonly string[])[];
  /** What the format has no place for, in words. */
  readonly leftOut: readonly string[];
}
