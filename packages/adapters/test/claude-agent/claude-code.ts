import { randomUUID } from "node:crypto";
import type { Hooks } from "../../src/claude-agent/index.ts";
import type { HookInput, HookOutput, SessionEntry, SessionKey } from "../../src/claude-agent/surface.ts";

/**
 * Claude Code's side of a session, in the order in which version 2.1.325 was seen to act: the prompt's hook, the
 * request, the prompt's entry, and for each call its hook, its effect, the hook of its outcome, and then the entries of
 * the call and its result together.
 */

/** What is used of a store: the SDK's interface. */
export interface Mirror {
  append(key: SessionKey, entries: SessionEntry[]): Promise<void>;
  load(key: SessionKey): Promise<SessionEntry[] | null>;
}

export interface ScriptedCall {
  readonly id: string;
  readonly name: string;
  readonly input: Readonly<Record<string, unknown>>;
}

export interface Circumstances {
  readonly key: SessionKey;
  readonly mirror: Mirror;
  readonly hooks: Hooks;
  /** Runs a tool. */
  readonly act: (call: ScriptedCall) => unknown;
}

export class ClaudeCode {
  readonly #circumstances: Circumstances;
  /** The transcript in its own file. */
  readonly local: SessionEntry[];
  #prompt = "";

  private constructor(circumstances: Circumstances, local: SessionEntry[]) {
    this.#circumstances = circumstances;
    this.local = local;
  }

  /** Starts it; with the session's transcript, if there is one. */
  static async start(circumstances: Circumstances): Promise<ClaudeCode> {
    const { mirror, key } = circumstances;
    return new ClaudeCode(circumstances, (await mirror.load(key)) ?? []);
  }

  /** Submits a prompt. Returns what the hook adds for the model; null if it blocks the prompt. */
  async prompt(text: string): Promise<string | null> {
    this.#prompt = randomUUID();
    const { decision, hookSpecificOutput: output } = await this.#hook("UserPromptSubmit", { prompt: text });
    if (decision === "block") return null;
    const added = output?.hookEventName === "UserPromptSubmit" ? output.additionalContext : "";
    const attachment = { type: "hook_additional_context", content: [added] };
    await this.#write([
      { type: "queue-operation", operation: "enqueue" },
      this.#entry("user", { message: { role: "user", content: [{ type: "text", text }] }, promptId: this.#prompt }),
      ...(added === "" ? [] : [this.#entry("attachment", { attachment })]),
    ]);
    return added;
  }

  /** A response with one call: the call runs. Returns false if a hook forbids it. */
  async call(call: ScriptedCall, said = `I call ${call.name}.`): Promise<boolean> {
    const { id: tool_use_id, name: tool_name, input: tool_input } = call;
    const asked = await this.#hook("PreToolUse", { tool_use_id, tool_name, tool_input });
    const isDenied = asked.hookSpecificOutput?.hookEventName === "PreToolUse";
    const output = isDenied ? "denied" : await this.#circumstances.act(call);
    if (!isDenied)
      await this.#hook("PostToolUse", { tool_use_id, tool_name, tool_input, tool_response: { stdout: output } });
    const response = `msg_${tool_use_id}`;
    await this.#write([
      this.#answer(response, { type: "text", text: said }, "tool_use"),
      this.#answer(response, { type: "tool_use", id: tool_use_id, name: tool_name, input: tool_input }, "tool_use"),
      this.#entry("user", {
        message: { role: "user", content: [{ type: "tool_result", tool_use_id, content: String(output) }] },
        promptId: this.#prompt,
        toolUseResult: { stdout: output },
      }),
    ]);
    return !isDenied;
  }

  /** The last answer of a turn. */
  async answer(text: string): Promise<void> {
    await this.#write([this.#answer(`msg_${randomUUID()}`, { type: "text", text }, "end_turn")]);
  }

  async #hook(event: keyof Hooks, input: Partial<HookInput>): Promise<HookOutput> {
    const { key, hooks } = this.#circumstances;
    const common = {
      session_id: key.sessionId,
      transcript_path: `/tmp/config/projects/${key.projectKey}/${key.sessionId}.jsonl`,
      cwd: "/tmp/project",
      prompt_id: this.#prompt,
      hook_event_name: event,
      ...(key.subpath === undefined ? {} : { agent_id: key.subpath.replace("subagents/agent-", "") }),
    };
    const answers = hooks[event].flatMap(({ hooks: all }) => all.map((hook) => hook({ ...common, ...input })));
    return Object.assign({}, ...(await Promise.all(answers))) as HookOutput;
  }

  async #write(entries: SessionEntry[]): Promise<void> {
    this.local.push(...entries);
    await this.#circumstances.mirror.append(this.#circumstances.key, entries);
  }

  #answer(id: string, block: object, stop_reason: string): SessionEntry {
    const usage = { input_tokens: 10, output_tokens: 5 };
    const message = { id, type: "message", role: "assistant", model: "claude", content: [block], stop_reason, usage };
    return this.#entry("assistant", { message });
  }

  #entry(type: string, members: object): SessionEntry {
    const parentUuid = this.local.findLast(({ uuid }) => uuid !== undefined)?.uuid ?? null;
    const { sessionId } = this.#circumstances.key;
    return { parentUuid, isSidechain: false, type, ...members, uuid: randomUUID(), cwd: "/tmp/project", sessionId };
  }
}
