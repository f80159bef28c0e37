import type { Interruption, ListQuery, Summary, Usage } from "holdfast";
import type { Target } from "../tools/files/call-target.ts";
import type { Item } from "../transcript/item.ts";

/**
 * What a screen or a script needs of an agent, and all that they may know of it: plain data in, plain data out, so that
 * the agent may as well run in another process. `LocalHost` runs it in this one.
 */
export interface Host {
  /** The address of the store, for people. */
  readonly store: string;
  /** What this place cannot promise, in words for a person. */
  readonly warnings: readonly string[];
  list(query?: ListQuery): Promise<{ readonly sessions: readonly Summary[]; readonly next?: string }>;
  /** The end of a conversation, without opening it: for previews. */
  peek(id: string): Promise<readonly Item[]>;
  /** A new conversation, recorded from its first prompt on. */
  create(options: NewChat): Promise<Chat>;
  /**
   * Opens it for writing. The same `Chat` while it is open in this host. HoldfastError: SESSION_NOT_FOUND, SESSION_BUSY
   * { holder }, FORMAT_NEWER. CommandError FOLDER_UNKNOWN: its folder is one that only the journal names.
   */
  open(id: string, options?: ChatOptions): Promise<Chat>;
  /** The latest in this folder that is not in use. */
  latest(cwd: string, options?: ChatOptions): Promise<Chat | null>;
  /**
   * A new session with the conversation up to and with this message (default: all of it). The source may be running.
   */
  fork(id: string, at?: string): Promise<Chat>;
  /** Stops every turn (recorded as aborted by "close"), ends the tools' processes, and closes the store. */
  close(): Promise<void>;
}

export interface ChatOptions {
  /** `provider/name`; default: what the session used last, else the configured one. */
  readonly model?: string;
  /** Work in the folder of this process, whatever folder the journal names. */
  readonly here?: boolean;
}

export interface NewChat extends Pick<ChatOptions, "model"> {
  readonly cwd: string;
  readonly title?: string;
  readonly labels?: Record<string, string>;
}

/**
 * One conversation with the agent. Several can be open, and work, at the same time: each record stays with its own
 * session.
 */
export interface Chat {
  readonly id: string;
  /** Replaced, never changed in place, whenever anything changes; `subscribe` tells. */
  readonly state: ChatState;
  /**
   * Called for each event, after `state` shows it. Returns the way to stop that. A listener that throws disturbs
   * nobody.
   */
  subscribe(listener: (event: ChatEvent) => void): () => void;
  /** Resolves when the chat is idle: no turn runs and none is queued; or when it waits for a person. */
  settled(): Promise<void>;
  /**
   * Begins a turn, or queues the prompt while one runs. Durable when it resolves (P1). An interrupted turn that nobody
   * decided on is left for this one; but not one that waits for a
   * person's answer: the prompt is queued behind it until that is answered, or left.
   */
  prompt(text: string): Promise<"started" | "queued">;
  /** Takes a queued prompt back. */
  withdraw(queued: string): Promise<void>;
  /** Finishes the interrupted turn. Tools' processes that still run are waited for, or stopped first. */
  finish(options?: { readonly processes?: "wait" | "stop" }): Promise<void>;
  /** Leaves the interrupted turn as it is: the next prompt tells the model what happened. */
  leave(): void;
  /**
   * Stops the running turn, or the summary; what was produced stays (C11, C12). Queued prompts wait until the next
   * `prompt`, or `resumeQueue`.
   */
  stop(by?: string): Promise<void>;
  /** Begins the turns of prompts that are still queued, as after a restart or a stop. */
  resumeQueue(): Promise<void>;
  /**
   * A person's word on a call that waits for permission. `always`: allow this kind of call for the rest of the session.
   */
  answer(call: string, word: "allow" | "always" | "deny", reason?: string): Promise<void>;
  setModel(model: string): Promise<void>;
  /** `stop` stops it, and it rejects: the conversation is as it was. */
  compact(): Promise<void>;
  clear(): Promise<void>;
  /** Of the last compact, clear or rewind. */
  undo(): Promise<void>;
  /**
   * Back to before this prompt: it and what follows leave the conversation. Answers the prompt's text, to be edited.
   */
  rewind(message: string): Promise<string>;
  rename(title: string): Promise<void>;
  /** The session is free for others when it resolves. A running turn is recorded as aborted by "close". */
  close(): Promise<void>;
}

export interface ChatState {
  readonly id: string;
  readonly title: string;
  readonly cwd: string;
  /** `provider/name` */
  readonly model: string;
  readonly status: "idle" | "running" | "waiting" | "interrupted";
  /** Recorded items, oldest first; those of an epoch that was left are not here. */
  readonly items: readonly Item[];
  /** What is being streamed now, and is not recorded as a message yet. */
  readonly live: LiveAnswer | null;
  /** Output of tools that are running, by call: the end of it. */
  readonly outputs: Readonly<Record<string, string>>;
  readonly asks: readonly PermissionAsk[];
  readonly queue: readonly { readonly id: string; readonly text: string }[];
  /** What the last process left in flight, until somebody decided on it. */
  readonly interruption: InterruptionShown | null;
  /** With what its sub-agents used. */
  readonly usage: Usage;
  /** How full the model's window is. */
  readonly window: { readonly usedTokens: number; readonly maxTokens: number };
  /** Why the last turn failed, or nothing can be recorded. */
  readonly failure: FailureShown | null;
  /**
   * What opening the session found and skipped, or did not find, and what its journal claims without this user's word;
   * in words. Empty if there is nothing to say.
   */
  readonly damage: readonly string[];
  readonly canUndo: boolean;
  /** The conversation is being summed up: on demand, or by itself in the middle of a turn. */
  readonly isCompacting: boolean;
}

export interface LiveAnswer {
  readonly text: string;
  readonly reasoning: string;
  /** Calls whose input is still being streamed. */
  readonly calls: readonly { readonly id: string; readonly name: string; readonly input: string }[];
}

/**
 * A call that has not started, and waits for approval (R7). The same object for every surface: chat, `run`, a server.
 * An approval is for the call with this
 * digest: if the call would do something else when it runs, it fails instead.
 */
export interface PermissionAsk {
  readonly call: string;
  readonly name: string;
  readonly input: unknown;
  /** What it would do, shortened to one line: for lists. Show `parts` to the person who decides. */
  readonly summary: string;
  /** The rule that "always" adds, as it is given to `--allow`. */
  readonly rule: string;
  /** The same for people. */
  readonly always: string;
  /** The folder that the agent works in. */
  readonly cwd: string;
  /** The path after all links; for a command the working folder. Null if the call has none. */
  readonly path: string | null;
  /** What stands at that path now. */
  readonly target: Target;
  /** SHA-256 of name, input, path and target. */
  readonly digest: string;
  /** The whole request as text, with every control character visible. */
  readonly parts: readonly ShownPart[];
}

export interface ShownPart {
  /**
   * `fact`: found out by Holdfast. The others are members of the input: a string as it is, another value as JSON, the
   * old and the new text of an edit as a diff.
   */
  readonly kind: "fact" | "text" | "json" | "diff";
  readonly label: string;
  /** `↵` marks a line end, `⇥` a tab, `<U+001B>` any other character that could not be seen. */
  readonly text: string;
}

export interface InterruptionShown {
  readonly turn: number;
  readonly at: string;
  readonly resumes: number;
  readonly how: Interruption<unknown>["how"];
  readonly prompt: string;
  readonly answered: boolean;
  /** What had been streamed. */
  readonly text: string;
  readonly calls: readonly InterruptedCall[];
}

export interface InterruptedCall {
  readonly call: string;
  readonly name: string;
  readonly input: unknown;
  readonly state: "never-started" | "outcome-unknown" | "unrecorded" | "awaiting" | "provider";
  /** Its process outlived the agent (R7b): it still runs, or has ended since and its outcome was found. */
  readonly process?: { readonly pid: number; readonly running: boolean; readonly exitCode?: number };
}

export interface FailureShown {
  /** Of HoldfastError, or MODEL_… (see exit.ts). */
  readonly code: string;
  /** What happened, whether data is safe, what to do next. */
  readonly message: string;
}

/** Also the lines of `holdfast run --json`. */
export type ChatEvent =
  | {
      readonly type: "session";
      readonly session: string;
      readonly model: string;
      readonly cwd: string;
      readonly resumed: boolean;
    }
  | { readonly type: "turn.started"; readonly turn: number; readonly prompt: string; readonly resumed?: true }
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "reasoning"; readonly text: string }
  /** What was streamed since the last message is void: the request is made again. */
  | { readonly type: "retry"; readonly reason: string }
  /** Recorded: it survives from here on. */
  | { readonly type: "item"; readonly item: Item }
  | { readonly type: "tool.started"; readonly call: string; readonly name: string; readonly input: unknown }
  | { readonly type: "tool.output"; readonly call: string; readonly text: string }
  | {
      readonly type: "tool.ended";
      readonly call: string;
      readonly name: string;
      readonly failed: boolean;
      readonly output: string;
    }
  | { readonly type: "permission.asked"; readonly ask: PermissionAsk }
  | { readonly type: "permission.answered"; readonly call: string; readonly allowed: boolean; readonly by: string }
  | { readonly type: "queued"; readonly id: string; readonly text: string }
  | { readonly type: "dequeued"; readonly id: string }
  /** The window is nearly full, and the conversation is being summed up; `replaced` follows. */
  | { readonly type: "compacting" }
  | { readonly type: "replaced"; readonly reason: "compaction" | "clear" | "rewind" | "undo"; readonly items: number }
  | { readonly type: "usage"; readonly usage: Usage }
  | {
      readonly type: "turn.ended";
      readonly outcome: "completed" | "aborted" | "failed" | "waiting";
      readonly by?: string;
      readonly error?: FailureShown;
      /** Calls that were denied in it. */
      readonly denied: number;
    }
  | { readonly type: "notice"; readonly level: "info" | "warning"; readonly text: string }
  /** Something else in `state` changed (title, model). */
  | { readonly type: "changed" };
