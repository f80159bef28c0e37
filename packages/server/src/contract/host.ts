import type { Account, CallAccount, Interruption, ListQuery, Summary, Usage } from "holdfast";
import type { Item } from "./item.ts";

/**
 * Everything a screen or script needs from an agent, and all it may know about it: plain data in, plain data out, so
 * the agent could run in another process. `LocalHost` runs it in this one.
 */
export interface Host {
  /** The store's address, for people. */
  readonly store: string;
  /** Human-readable warnings: what this store cannot guarantee, and what was skipped or ignored. */
  readonly warnings: readonly string[];
  list(query?: ListQuery): Promise<{ readonly sessions: readonly Summary[]; readonly next?: string }>;
  /** Searches titles and messages of all sessions, newest sessions first. */
  search(text: string): AsyncIterable<{ readonly session: string; readonly excerpt: string }>;
  /** The end of a conversation, for previews; does not open the session. */
  peek(id: string): Promise<readonly Item[]>;
  /**
   * What was asked in the latest sessions of this folder, oldest first, without those of the session `except`. A
   * session that cannot be read is left out.
   */
  prompts(cwd: string, except: string): Promise<readonly string[]>;
  /** Creates a session. Closing it deletes it if nothing has happened in it. */
  create(options: NewChat): Promise<Chat>;
  /**
   * Opens a session for writing; returns the same `Chat` while it is open in this host. Throws HoldfastError
   * SESSION_NOT_FOUND, SESSION_BUSY { holder }, FORMAT_NEWER; CommandError FOLDER_UNKNOWN if only the journal names its
   * folder, SESSION_FOREIGN if another program wrote it.
   */
  open(id: string, options?: ChatOptions): Promise<Chat>;
  /**
   * Opens the latest session in this folder, an unfinished one first; null if there is none. Throws SESSION_BUSY if
   * another process has the latest one open: opening an older one instead would surprise.
   */
  latest(cwd: string, options?: ChatOptions): Promise<Chat | null>;
  /** The last session of this folder that nobody has open, if it is unfinished. Opens nothing. */
  unfinished(cwd: string): Promise<UnfinishedSession | null>;
  /**
   * Creates a session with the conversation up to and including the step of this message (default: all of it). The
   * source may be in use.
   */
  fork(id: string, options?: ForkChat): Promise<Chat>;
  /** Stops every turn (recorded as aborted by "close"), ends the tools' processes, and closes the store. */
  close(): Promise<void>;
}

/** A session that was left in mid-turn, waiting for a person, or with queued prompts. */
export interface UnfinishedSession {
  readonly id: string;
  readonly title: string;
  readonly cwd: string;
  readonly account: Account;
  /** When it was last written to. */
  readonly at: string;
  readonly queue: readonly string[];
  readonly interruption: InterruptionShown | null;
}

export interface ChatOptions {
  /** `provider/name`; default: the session's last model if this user has used it here, else the configured one. */
  readonly model?: string;
  /** Work in the user's current folder, regardless of the folder in the journal. */
  readonly here?: boolean;
  /** The user's current folder; default: this process's. */
  readonly cwd?: string;
  /** Continue a session that another program wrote. */
  readonly takeOver?: boolean;
}

export interface ForkChat {
  /** The id of a message; default: the last one. */
  readonly at?: string;
  /** Where the fork works, as the user says; default: where the source does. */
  readonly cwd?: string;
}

export interface NewChat extends Pick<ChatOptions, "model"> {
  readonly cwd: string;
  readonly title?: string;
  readonly labels?: Record<string, string>;
  /** Keep it even if nothing happens in it. */
  readonly keep?: true;
  /** In a server: finish an interrupted turn after a restart of the server. Kept outside the journal. */
  readonly finishAfterRestart?: true;
}

/** One conversation with the agent. Several can be open and working at once; each is recorded in its own session. */
export interface Chat {
  readonly id: string;
  /** Never mutated: each change replaces it. */
  readonly state: ChatState;
  /**
   * Calls the listener for each event, after `state` shows it. Returns a function that unsubscribes. A listener that
   * throws does not affect the others.
   */
  subscribe(listener: (event: ChatEvent) => void): () => void;
  /**
   * Resolves when the chat is not busy, or a person is asked. A stop or failure may leave prompts queued. After each
   * call of this chat, `state` shows what the call did.
   */
  settled(): Promise<void>;
  /**
   * Starts a turn, or queues the prompt while one is running. Durable when it resolves (P1). Replaces an interrupted
   * turn, unless that one waits for a person: then the prompt is queued until the person answers or leaves it. The same
   * `key` again means the same prompt, for as long as the session lives: it starts nothing, except that a turn that was
   * cut off is finished. Throws KEY_TAKEN if that prompt was another one.
   */
  prompt(text: string, images?: readonly PromptImage[], key?: string): Promise<"started" | "queued">;
  /** Removes a prompt from the queue. */
  withdraw(queued: string): Promise<void>;
  /** Finishes the interrupted turn, after waiting for tool processes that are still running, or stopping them. */
  finish(options?: { readonly processes?: "wait" | "stop" }): Promise<void>;
  /** Leaves the interrupted turn as it is; the next prompt tells the model what happened. Comes before later calls. */
  leave(): void;
  /**
   * Stops the running turn or compaction; keeps what the turn produced (C11, C12). Queued prompts wait until the next
   * `prompt` or `resumeQueue`.
   */
  stop(by?: string): Promise<void>;
  /** Starts the prompts that are still queued, for example after a restart or a stop. */
  resumeQueue(): Promise<void>;
  /**
   * Answers a call that waits for permission. `always` and `project` also add `rule`: for the rest of the session, or
   * for this project. The model is told the reason of a denial. The first answer counts: a later one is refused with
   * ALREADY_ANSWERED, and one to a call that is not waiting with CALL_UNKNOWN.
   */
  answer(call: string, answer: ApprovalAnswer, reason?: string): Promise<void>;
  setModel(model: string): Promise<void>;
  /** From the next call on; also for sub-agents. A question that is open stays open. */
  setMode(mode: Mode): void;
  /** Rejects if `stop` stops it; the conversation is then unchanged. */
  compact(): Promise<void>;
  clear(): Promise<void>;
  /** Undoes the last compact, clear or rewind. */
  undo(): Promise<void>;
  /** Removes this prompt and everything after it from the conversation. Returns the prompt's text, for editing. */
  rewind(message: string): Promise<string>;
  rename(title: string): Promise<void>;
  /** Other processes can open the session when it resolves. A running turn is recorded as aborted by "close". */
  close(): Promise<void>;
}

export interface ChatState {
  readonly id: string;
  readonly title: string;
  readonly cwd: string;
  /** `provider/name` */
  readonly model: string;
  readonly status: "idle" | "running" | "waiting" | "interrupted";
  /**
   * Something is under way, or follows by itself: a turn, also while a person is asked, the next queued prompt, a
   * compaction. `settled` waits for its end.
   */
  readonly isBusy: boolean;
  /** What is true of the session, as the library says it. */
  readonly account: Account;
  /** What the agent may do beyond the rules. */
  readonly mode: Mode;
  /** Recorded items of the current epoch, oldest first. */
  readonly items: readonly Item[];
  /** What is being streamed and is not recorded as a message yet. */
  readonly live: LiveAnswer | null;
  /** The end of each running tool's output, by call. */
  readonly outputs: Readonly<Record<string, string>>;
  readonly asks: readonly PermissionAsk[];
  readonly queue: readonly { readonly id: string; readonly text: string; readonly images?: readonly PromptImage[] }[];
  /** The interrupted or failed turn, until someone finishes or leaves it. */
  readonly interruption: InterruptionShown | null;
  /** Includes sub-agents. */
  readonly usage: Usage;
  /** How full the model's context window is. */
  readonly window: { readonly usedTokens: number; readonly maxTokens: number };
  /** Why the last turn failed, or why nothing can be recorded. */
  readonly failure: FailureShown | null;
  /** In words: what opening the session skipped or missed, and what its journal claims without the user's consent. */
  readonly damage: readonly string[];
  readonly canUndo: boolean;
  /** The conversation is being compacted, on request or in the middle of a turn. */
  readonly isCompacting: boolean;
}

/** An image that goes with a prompt. */
export interface PromptImage {
  readonly name: string;
  readonly mediaType: string;
  /** In base64. */
  readonly data: string;
}

export interface LiveAnswer {
  readonly text: string;
  readonly reasoning: string;
  /** Calls whose input is still being streamed. */
  readonly calls: readonly { readonly id: string; readonly name: string; readonly input: string }[];
}

/**
 * A call that has not started and waits for approval (R7). The same object on every surface: chat, `run`, a server. An
 * approval is for the call with this digest: a call that would do something else when it runs fails instead.
 */
export interface PermissionAsk {
  /** Unique among the open questions of a chat. For a sub-agent's call: its session and its id. */
  readonly call: string;
  /** The sub-agent that asks; absent for the chat's own agent. */
  readonly agent?: { readonly session: string; readonly call: string; readonly task: string };
  readonly name: string;
  readonly input: unknown;
  /** What it would do, shortened to one line, for lists. Show `parts` to the person who decides. */
  readonly summary: string;
  /** The rule that "always" adds, in the form `--allow` takes; null if no rule can allow this call. */
  readonly rule: string | null;
  /** What that rule allows, for people. */
  readonly always: string;
  /** The agent's working folder. */
  readonly cwd: string;
  /** The path with all links resolved; for a command, the working folder. Null if the call has none. */
  readonly path: string | null;
  /** What is at that path now. */
  readonly target: Target;
  /** SHA-256 of name, input, path and target. */
  readonly digest: string;
  /** The whole request as text, with control characters made visible. */
  readonly parts: readonly ShownPart[];
  /** The possible answers, the same on every surface. */
  readonly choices: readonly ApprovalChoice[];
}

export type ApprovalAnswer = "allow" | "always" | "project" | "deny";

/** One answer to a question: a person types its key or its word. */
export interface ApprovalChoice {
  readonly key: string;
  readonly word: string;
  readonly label: string;
  readonly answer: ApprovalAnswer;
  /** Ask for a reason first, which the model is told. */
  readonly asksWhy?: true;
  /** What an empty line means. */
  readonly isDefault?: true;
}

export interface ShownPart {
  /**
   * `fact`: found by Holdfast. The others are members of the input: `text` for a string, `json` for any other value,
   * `diff` for the old and new text of an edit.
   */
  readonly kind: "fact" | "text" | "json" | "diff";
  readonly label: string;
  /** `↵` marks a line end, `⇥` a tab, `<U+001B>` any other invisible character. */
  readonly text: string;
}

export interface InterruptionShown {
  readonly turn: number;
  readonly at: string;
  readonly resumes: number;
  readonly how: Interruption<unknown>["how"];
  /** The same as a phrase: "interrupted: its process died". */
  readonly words: string;
  readonly prompt: string;
  readonly answered: boolean;
  /** The part of the answer that was streamed. */
  readonly text: string;
  readonly calls: readonly CallAccount[];
}

export interface FailureShown {
  /** A code of HoldfastError or CommandError, or MODEL_… (see models/explain.ts). */
  readonly code: string;
  /** What happened, whether data is safe, what to do next. */
  readonly message: string;
}

/** Also the output of `holdfast run --json`, one per line. */
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
  /** Discard what was streamed since the last message: the request is being retried. */
  | { readonly type: "retry"; readonly reason: string }
  /** Recorded: it survives a crash from here on. */
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
  /** The conversation is being compacted; `replaced` follows if that succeeds. */
  | { readonly type: "compacting" }
  | { readonly type: "replaced"; readonly reason: "compaction" | "clear" | "rewind" | "undo"; readonly items: number }
  | { readonly type: "usage"; readonly usage: Usage }
  | {
      readonly type: "turn.ended";
      readonly outcome: "completed" | "aborted" | "failed" | "waiting";
      readonly by?: string;
      readonly error?: FailureShown;
      /** Calls denied in this turn. */
      readonly denied: number;
    }
  | { readonly type: "notice"; readonly level: "info" | "warning"; readonly text: string }
  /** Something else in `state` changed (title, model). */
  | { readonly type: "changed" };

/**
 * What the agent may do beyond the rules. The person switches it in the chat, and it lasts as long as the chat: it is
 * never recorded, because a journal grants nothing.
 * - `ask`: the rules alone.
 * - `accept edits`: `write` and `edit` inside the folder run without asking. Guarded files are asked about as before.
 * - `plan`: nothing runs that could change something.
 */
export type Mode = "ask" | "accept edits" | "plan";

/** What was at the real path of a call when it was inspected. `identity` is the device and inode number. */
export type Target =
  | { readonly kind: "none" }
  | {
      readonly kind: "file";
      readonly identity: string;
      /**
       * For a call that changes the file: its size, and the digest of its bytes (its change time if it is too large or
       * cannot be read).
       */
      readonly bytes?: number;
      readonly version?: string;
    }
  | { readonly kind: "folder" | "other"; readonly identity: string }
  /** The path could not be inspected. */
  | { readonly kind: "unknown"; readonly why: string };
