import type { Dialect, Entry } from "../dialects/dialect.ts";

/** An entry of the conversation, with what the model is to see of it. */
export interface Item<M> {
  entry: Entry<M>;
  /** What it came from: a `message`, a `tool.ended` that no message holds yet, a `repair`, an `edit`. */
  readonly from: "message" | "result" | "repair" | "edit";
  readonly role: ReturnType<Dialect<M>["role"]>;
  /** In force: the model does not see it. What is to be hidden or replaced from the next turn on is still shown (R1). */
  hidden: boolean;
  /** Texts in it were redacted. */
  readonly redacted: boolean;
  /** The application's array no longer has it, or has something else in its place: it is kept for people until the next epoch. */
  superseded?: true;
}

/** Results that came too late are for people (R1). */
export function isShown<M>({ entry, hidden }: Item<M>): boolean {
  return !hidden && entry.late !== true;
}
