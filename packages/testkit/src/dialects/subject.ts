import type { Dialect } from "holdfast";

/** A call of the scripted model. */
export interface SampleCall {
  readonly id: string;
  readonly name: string;
  readonly input: { readonly [name: string]: string };
}

/** A dialect to test, and how to say things in it. */
export interface DialectSubject<M> {
  readonly dialect: Dialect<M>;
  user(text: string): M;
  /** The messages of one response. It has text, calls, or both. */
  step(said: { readonly text: string | null; readonly calls: readonly SampleCall[] }): M[];
  /** The message that answers a call, as the SDK makes it. */
  result(call: SampleCall, text: string): M;
  /** More messages to store and read back: images, reasoning, metadata, whatever the SDK can produce. */
  readonly samples?: readonly M[];
  /** Why the provider would refuse this request. Without it, only the rules that all providers share are checked. */
  judge?(messages: readonly M[]): readonly string[];
  /**
   * The parts of a request that must stay the same as the conversation continues. Default: its messages. A dialect that
   * joins neighbouring messages returns their blocks.
   */
  atoms?(messages: readonly M[]): readonly unknown[];
}
