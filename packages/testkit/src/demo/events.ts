import type { Interruption } from "holdfast";
import type { Message } from "./model.ts";

/** What the agent of the demo tells its parent, one line of JSON each (kill/pipe.ts). */
export type DemoEvent =
  | {
      readonly e: "opened";
      readonly session: string;
      readonly ms: number;
      readonly found: Interruption<Message> | null;
      /** What there is to go on with: a word for each entry. */
      readonly there: readonly EntryWord[];
    }
  /** What the model is asked with. */
  | { readonly e: "request"; readonly messages: readonly Message[] }
  /** A piece of what the model streams, told before anything of it is kept. */
  | { readonly e: "word"; readonly text: string }
  /** Its promise has resolved: from here on it must survive. */
  | { readonly e: "kept"; readonly what: Kept; readonly id: string }
  | { readonly e: "answer"; readonly text: string; readonly calls: readonly string[] }
  | { readonly e: "tool"; readonly name: string; readonly came: "started" | "ended"; readonly value?: string }
  | { readonly e: "done" }
  | { readonly e: "failed"; readonly message: string };

export type Kept = "message" | "tool.started" | "tool.ended";

/** `note`: made up, and marked so: what became of a call that was cut off. */
export type EntryWord = "prompt" | "answer" | "result" | "note";
