/** A request and how to check it. */
export interface RequestExample<Options> {
  readonly name: string;
  readonly request: unknown;
  readonly options?: Options;
}

/** A rule, with a conversation that it accepts, and conversations that only this rule rejects. */
export interface Example<Options> {
  readonly rule: string;
  readonly accepts: RequestExample<Options>;
  readonly refuses: readonly RequestExample<Options>[];
}
