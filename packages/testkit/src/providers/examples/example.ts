/** A request and how to check it. */
export interface Judged<Options> {
  readonly name: string;
  readonly request: unknown;
  readonly options?: Options;
}

/** A rule, with a conversation that it accepts, and conversations that only this rule rejects. */
export interface Example<Options> {
  readonly rule: string;
  readonly accepts: Judged<Options>;
  readonly refuses: readonly Judged<Options>[];
}
