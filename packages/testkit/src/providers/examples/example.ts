/** A request and how to judge it. */
export interface Judged<Options> {
  readonly name: string;
  readonly request: unknown;
  readonly options?: Options;
}

/** A rule with a conversation that it accepts, and conversations that this rule and no other refuses. */
export interface Example<Options> {
  readonly rule: string;
  readonly accepts: Judged<Options>;
  readonly refuses: readonly Judged<Options>[];
}
