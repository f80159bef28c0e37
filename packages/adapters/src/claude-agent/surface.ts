import type { CallState, Outcome } from "holdfast";

/**
 * What is used of the types of `@anthropic-ai/claude-agent-sdk`. They are declared here because the SDK's package
 * brings a program of 350 MB with it, which nothing here needs. The SDK's own types fit them.
 */

/** One transcript: a session's, or that of one of its sub-agents. */
export interface SessionKey {
  readonly projectKey: string;
  readonly sessionId: string;
  readonly subpath?: string | undefined;
}

/** A line of a transcript. */
export interface SessionEntry {
  type: string;
  uuid?: string;
  timestamp?: string;
  [member: string]: unknown;
}

/** What a hook is told. */
export interface HookInput {
  readonly session_id: string;
  readonly transcript_path: string;
  readonly cwd: string;
  readonly hook_event_name: string;
  readonly agent_id?: string | undefined;
  readonly prompt_id?: string | undefined;
  readonly prompt?: unknown;
  readonly tool_use_id?: unknown;
  readonly tool_name?: unknown;
  readonly tool_input?: unknown;
  readonly tool_response?: unknown;
  readonly error?: unknown;
  readonly duration_ms?: unknown;
}

/** What a hook answers. */
export interface HookOutput {
  decision?: "block";
  reason?: string;
  systemMessage?: string;
  hookSpecificOutput?:
    | { hookEventName: "PreToolUse"; permissionDecision: "deny"; permissionDecisionReason: string }
    | { hookEventName: "UserPromptSubmit"; additionalContext: string };
}

export interface HookMatcher {
  hooks: ((input: HookInput) => Promise<HookOutput>)[];
}

/** The events that are recorded. */
export const HOOK_EVENTS = ["UserPromptSubmit", "PreToolUse", "PostToolUse", "PostToolUseFailure"] as const;
export type HookEvent = (typeof HOOK_EVENTS)[number];
export type Hooks = Record<HookEvent, HookMatcher[]>;

/** A call of which no result is in the transcript. */
export interface InterruptedCall {
  readonly id: string;
  readonly name: string;
  readonly input: unknown;
  /** `outcome-unknown`: it was about to run or was running. `ended`: the transcript does not have its result. */
  readonly state: CallState;
  /** What the tool returned, or its error, if it has ended. */
  readonly outcome?: Outcome;
  /** The transcript of the sub-agent that made the call. */
  readonly subpath?: string;
}

/** What the last process of a session left unfinished. */
export interface SessionInterruption {
  /** Prompts that are not in the transcript, because it was not mirrored in time. */
  readonly prompts: readonly string[];
  readonly calls: readonly InterruptedCall[];
  /** Transcripts of sub-agents that cannot be read: what those were doing is unknown. Left out if there are none. */
  readonly unreadable?: readonly string[];
}
