import type { Dialect, Entry } from "../dialects/dialect.ts";

/** An entry of the conversation, and how it is shown to the model. */
export interface Item<M> {
  entry: Entry<M>;
  /** The record it came from: a `message`, a `tool.ended` whose result is in no message yet, a `repair`, an `edit`. */
  readonly from: "message" | "result" | "repair" | "edit";
  readonly role: ReturnType<Dialect<M>["role"]>;
  /** Currently hidden from the model. Messages to be hidden or replaced from the next turn on are still shown (R1). */
  hidden: boolean;
  /** Some of its text was redacted. */
  readonly redacted: boolean;
  /** The application's array dropped or replaced it. It is kept for people until the next epoch. */
  superseded?: true;
}

/** Late results are shown to people only (R1). */
export function isShown<M>({ entry, hidden }: Item<M>): boolean {
  return !hidden && entry.late !== true;
}
