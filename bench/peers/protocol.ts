/** What the parent asks a worker for. */
export type Request =
  | { readonly task: "begin"; readonly warmUpTurns: number; readonly warmUpMs: number }
  | { readonly task: "grow"; readonly to: number; readonly budgetMs: number }
  | { readonly task: "measure"; readonly turns: number; readonly forMs: number }
  | { readonly task: "fill"; readonly messages: number }
  | { readonly task: "sessions"; readonly count: number }
  | { readonly task: "resume"; readonly id: string; readonly messages: number }
  | { readonly task: "list"; readonly count: number };

export interface Answers {
  readonly begin: object;
  readonly grow: Grown;
  readonly measure: Measured;
  readonly fill: { readonly id: string };
  readonly sessions: object;
  readonly resume: Read;
  readonly list: Read;
}

export interface Grown {
  /** How many there are now: fewer than asked for if the time would not do. */
  readonly messages: number;
  readonly ms: number;
}

export interface Measured {
  /** Per message, turn by turn: the time that a turn took, divided by its messages. */
  readonly us: readonly number[];
  readonly bytesPerByte: number | null;
}

export interface Read {
  readonly ms: number;
  readonly peakMB: number;
  readonly alive: boolean;
}
