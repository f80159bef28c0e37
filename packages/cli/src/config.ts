/** Everything that can be configured: a flag, else the environment, else the file, else the default. */
export interface Config {
  /** The address of the store; undefined: the library's default. */
  readonly store: string | undefined;
  /** `provider/name`, or `offline`. */
  readonly model: string;
  /** Of an OpenAI-compatible server. */
  readonly baseUrl: string | undefined;
  /** Rules of permission, in the order in which they were given. */
  readonly allow: readonly string[];
  readonly ask: readonly string[];
  readonly deny: readonly string[];
  /** Tokens that the model's window holds; undefined: what is known of the model. */
  readonly windowTokens: number | undefined;
  /** Milliseconds that the offline model takes for each delta. */
  readonly offlineDelayMs: number;
  /** HOLDFAST_DEBUG: stack traces and internals, to stderr. */
  readonly debug: boolean;
}
