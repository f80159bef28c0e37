import { lstatSync } from "node:fs";
import { join, resolve } from "node:path";
import { type Durable, durable } from "@holdfast/adapters/ai-sdk";
import type { ModelMessage, ToolSet } from "ai";
import type { CallFacts, CallPolicy, OpenCall, Session, ToolProcess, Turn } from "holdfast";
import { configPath } from "../config.ts";
import { defined } from "../defined.ts";
import { FolderNotes, rulesFor } from "../evidence/folder-notes.ts";
import type { McpServers } from "../mcp/servers.ts";
import type { ResolvedModel } from "../models/resolve.ts";
import { POLICY } from "../store/account.ts";
import { APP } from "../store/app.ts";
import { outputsFolder } from "../store/output-folders.ts";
import { nullIfUnreadable } from "../store/usage.ts";
import { isStaleWrite } from "../tools/files/stale-writes.ts";
import { type OwnStore, ownStore } from "../tools/paths/own-store.ts";
import {
  type Decision,
  decide,
  makeSearchFilter,
  type Policy,
  type PolicyContext,
} from "../tools/permission/decide.ts";
import { allowedIn, decisionIn, type Mode, wordsOf as modeWords } from "../tools/permission/mode.ts";
import { commandEnvironment } from "../tools/shell/environment.ts";
import {
  asStopped,
  type FoundCommand,
  findCommand,
  isLookedFor,
  isRunning,
  stopGroup,
  waitForCommand,
} from "../tools/shell/surviving-commands.ts";
import { makeTools, REPLAY, type ToolContext } from "../tools/tools.ts";
import { callWords } from "../transcript/words.ts";
import type { Claims } from "../trust/claims.ts";
import { projectOf } from "../trust/project-rules.ts";
import { stateFolder } from "../trust/state-folder.ts";
import { canonical, type SessionTrust } from "../trust/trust.ts";
import { ApprovalGuard } from "./approval-guard.ts";
import type { AgentEvents } from "./events.ts";
import { buildInstructions } from "./instructions.ts";
import type { TurnRun, Verdict } from "./loop.ts";
import { assertMayRun, callFacts } from "./open-calls.ts";
import { ParkedCalls } from "./parked-calls.ts";
import { joinServers, makeMissingTools, makeServerTools } from "./server-tools.ts";
import type { EditorTools, Services } from "./services.ts";
import { DELEGATE, processesBelow } from "./subagent-sessions.ts";

/** Makes an agent a sub-agent, or lets it have sub-agents. */
export interface AgentRole {
  /** The parent of a sub-agent, which works in the same folder under the same rules. */
  readonly parent?: AgentRuntime | null;
  /** Creates the tool that starts sub-agents. Without it, the agent cannot start any. */
  readonly delegateTool?: ((agent: AgentRuntime, model: ResolvedModel, parked: ParkedCalls) => ToolSet[string]) | null;
}

/** One agent: a session, and everything needed to work in it. */
export class AgentRuntime {
  readonly session: Session<ModelMessage>;
  readonly #replay: Readonly<Record<string, "safe" | "never">>;
  readonly durable: Durable;
  readonly outputs: string;
  readonly approvals: ApprovalGuard;
  readonly #services: Services;
  readonly #events: AgentEvents;
  readonly #parent: AgentRuntime | null;
  readonly #delegateTool: AgentRole["delegateTool"];
  readonly #trust: SessionTrust;
  readonly #notes: FolderNotes;
  #mode: Mode = "ask";
  /** The store this process has open, if it is on disk. */
  readonly #own: OwnStore | null;
  /** Calls whose commands outlived their agent, until the user had them stopped. */
  readonly #stoppedCalls = new Set<string>();
  readonly #halt = new AbortController();
  /** How long a turn that is handed over may take to come to rest, its tools' end included. */
  handOverMs = 0;

  constructor(
    session: Session<ModelMessage>,
    services: Services,
    events: AgentEvents,
    { parent = null, delegateTool = null }: AgentRole = {},
  ) {
    this.session = session;
    this.#services = services;
    this.#events = events;
    this.#parent = parent;
    this.#delegateTool = delegateTool;
    this.#trust = services.trust.of(session.id);
    this.outputs = services.outputs(session.id);
    this.#own = ownStore(services.store.url);
    const judge = (name: string, input: unknown): Decision => this.decide(name, input);
    const own = this.#own;
    this.approvals = new ApprovalGuard(
      session,
      { cwd: () => this.cwd, own, editor: () => this.#editor?.files ?? null },
      judge,
    );
    this.#notes = new FolderNotes({
      outputs: this.outputs,
      folder: () => this.cwd,
      rules: () => rulesFor(own, this.outputs, makeSearchFilter(this.#policyContext)),
      notes: () => session.attributes.notes,
      hasOpenCalls: () => session.turn?.open.some(({ before }) => before !== undefined) === true,
    });
    const isInEditor = (): boolean => this.#isWrittenInEditor;
    this.#replay = {
      ...REPLAY,
      [DELEGATE]: "safe",
      // A second time, it could replace what the user has typed since.
      get write() {
        return isInEditor() ? "never" : "safe";
      },
    };
    this.durable = durable(session, {
      replay: this.#replay,
      before: (call, replay) => this.#notes.note(call, replay === "safe"),
    });
  }

  /** Never taken from the journal, which anyone may have written. */
  get cwd(): string {
    return this.#parent?.cwd ?? this.#trust.folder ?? process.cwd();
  }

  /** The configured rules and those of the project, plus what the user allowed for this session. */
  get policy(): Policy {
    const { allow, ask, deny } = this.#services.config;
    const project = this.#services.rules.of(this.cwd);
    return {
      allow: [...allow, ...project.allow, ...this.#rules, ...allowedIn(this.mode)],
      ask: [...ask, ...project.ask],
      deny: [...deny, ...project.deny],
    };
  }

  /** The folder that a rule for this project is saved for; null if it cannot be saved. */
  get project(): string | null {
    const project = this.#services.rules.path === null ? null : projectOf(this.cwd);
    return typeof project === "string" ? project : null;
  }

  /** That of the chat, for sub-agents too. */
  get mode(): Mode {
    return this.#parent?.mode ?? this.#mode;
  }

  set mode(mode: Mode) {
    this.#mode = mode;
  }

  get #editor(): EditorTools | null {
    return this.#parent === null ? (this.#services.editor?.(this.session.id) ?? null) : this.#parent.#editor;
  }

  get #isWrittenInEditor(): boolean {
    return this.#editor?.files.write != null;
  }

  get #servers(): readonly McpServers[] {
    return [this.#services.servers, this.#editor?.servers].filter((one) => one != null);
  }

  get #rules(): readonly string[] {
    return this.#parent === null ? this.#trust.rules : this.#parent.#rules;
  }

  decide(name: string, input: unknown): Decision {
    const decision = decide({ name, input }, this.#policyContext);
    // Starting a sub-agent is harmless: the same rules apply to each of its calls.
    const isHarmless = name === DELEGATE && decision.verdict === "ask" && decision.rule === undefined;
    if (isHarmless) return { ...decision, verdict: "allow" };
    return decisionIn(this.mode, name, decision);
  }

  /** Saves a rule for this project in the user's configuration. Returns why that failed; null if it is saved. */
  allowInProject(rule: string): string | null {
    const { project } = this;
    if (project === null) return "it has no configuration, or the folder is not yours";
    try {
      this.#services.rules.add(project, "allow", [rule]);
      return null;
    } catch (error) {
      // A full or read-only home must not stop the work.
      if (error instanceof Error && "code" in error) return error.message;
      throw error;
    }
  }

  /** Allows a rule for the rest of the session. Returns why it lasts only for this process; null if it is saved. */
  allow(rule: string): string | null {
    this.#trust.allow(rule);
    return this.#trust.unkept;
  }

  /**
   * Records that a person approved this call. Stored outside the journal, before the journal says so: only then may the
   * call run after a restart.
   */
  approve(turn: Turn<ModelMessage>, id: string, input: unknown): void {
    const call = turn.open.findLast((one) => one.id === id && canonical(one.input) === canonical(input));
    if (call) this.#trust.approve(call);
  }

  /** What the journal claims that this user has not said here. */
  claims(): Omit<Claims, "model"> {
    const { session } = this;
    const { allow } = session.attributes.notes;
    const known = this.policy.allow;
    const calls = session.interruption?.calls ?? [];
    const isUnknown = (rule: unknown): rule is string => typeof rule === "string" && !known.includes(rule);
    const isForeign = (call: OpenCall): boolean =>
      call.approved === true &&
      !this.#trust.hasApproved(call) &&
      this.decide(call.name, call.input).verdict !== "allow";
    return {
      rules: Array.isArray(allow) ? allow.filter(isUnknown) : [],
      approvals: calls.filter(isForeign).map((call) => callWords(call)),
      pids: calls.flatMap(({ process }) => (process && !this.#trust.hasStarted(process) ? [process.pid] : [])),
    };
  }

  /** Prepares one turn. What its tools record belongs to this turn, even if it ends first (C14). */
  async prepareTurn(turn: Turn<ModelMessage>, model: ResolvedModel): Promise<TurnRun> {
    const { session, durable } = this;
    const { show, retrying, compacting, compacted, cutOff, used } = this.#events;
    const signal = AbortSignal.any([turn.signal, this.#services.ending, this.#halt.signal]);
    const servers = this.#servers;
    await Promise.all(servers.map((one) => one.ready(signal)));
    // A sub-agent has nobody to tell.
    if (this.#parent === null)
      for (const text of servers.flatMap((one) => one.takeWarnings())) this.#events.warned(text);
    const parked = new ParkedCalls();
    return {
      session,
      durable,
      model,
      signal,
      handOver: turn.handOver,
      tools: this.#tools(turn, model, parked),
      parked,
      instructions: await buildInstructions(this.cwd, this.#own, modeWords(this.mode)),
      approve: (call) => this.#verdict(call),
      show,
      retrying,
      compacting,
      compacted,
      cutOff,
      used,
    };
  }

  /** Ends the running tools and the answer. What is known of them is recorded. */
  halt(): void {
    this.#halt.abort(new DOMException("there was no more time", "AbortError"));
  }

  /** Continues the interrupted turn. */
  async resumeTurn(): Promise<Turn<ModelMessage>> {
    const { session } = this;
    return session.resumeTurn({ calls: await this.callPolicy(session.interruption?.calls ?? []) });
  }

  /** What happens to the calls that the last process left open, and what is known of each. */
  async callPolicy(calls: readonly OpenCall[]): Promise<CallPolicy> {
    const commands = await this.findCommands(calls);
    const facts = new Map<string, CallFacts>();
    for (const call of calls) {
      const { id } = call;
      const known = callFacts({ command: commands.get(id), mayRun: await this.#mayRunNow(call) });
      const below = await this.#runningBelow(call);
      const isKnown = known.outcome !== undefined || known.neverBegan === true;
      const changes = isKnown ? null : await this.#notes.changesSince(call);
      const found: CallFacts = {
        ...known,
        ...(below === null ? {} : { process: { pid: below, running: true } }),
        ...(changes === null ? {} : { changes }),
      };
      // Some servers reuse ids (R9). What is known of one such call must not be taken for the other's.
      facts.set(id, facts.has(id) ? { mustNotRun: true } : found);
    }
    // For a tool that is gone, another one tells the model so.
    const tools = calls.map(({ name }) => {
      return [name, { replay: Object.hasOwn(this.#replay, name) ? this.#replay[name]! : "never" }] as const;
    });
    return { ...POLICY, tools: Object.fromEntries(tools), facts: Object.fromEntries(facts) };
  }

  async #mayRunNow(call: OpenCall): Promise<boolean> {
    const { name, input, state, approved } = call;
    // A rule that denies the call now overrides an earlier approval.
    const { verdict } = this.decide(name, input);
    if (verdict !== "allow" && !(verdict === "ask" && approved && this.#trust.hasApproved(call))) return false;
    if (state !== "outcome-unknown") return true;
    const isInEditor = name === "write" && this.#isWrittenInEditor;
    return !isInEditor && !(await isStaleWrite(this.cwd, call, this.#own));
  }

  /** Finds the commands of started calls: they may have outlived their agent (R7b). */
  async findCommands(calls: readonly OpenCall[]): Promise<Map<string, FoundCommand>> {
    const found = new Map<string, FoundCommand>();
    const isOwn = this.session.attributes.app === APP;
    for (const call of calls) {
      if (!isLookedFor(call, isOwn)) continue;
      const { id, process } = call;
      const isOurs = process === undefined || this.#trust.hasStarted(process);
      const command = await findCommand(this.outputs, id, process, { isOurs });
      found.set(id, this.#stoppedCalls.has(id) ? asStopped(command) : command);
    }
    return found;
  }

  /** A command of a sub-agent that is still running. */
  async #runningBelow(call: OpenCall): Promise<number | null> {
    for (const process of (await nullIfUnreadable(this.#processesBelow(call))) ?? [])
      if (await isRunning(process)) return process.pid;
    return null;
  }

  /** Waits for commands that outlived their agent, or stops them. False if the wait was aborted: they keep running. */
  async settleCommands(
    calls: readonly OpenCall[],
    {
      processes = "wait",
      signal,
      waits = () => {},
    }: {
      readonly processes?: "wait" | "stop";
      readonly signal?: AbortSignal | undefined;
      readonly waits?: (pid: number) => void;
    },
  ): Promise<boolean> {
    const commands = await this.findCommands(calls);
    for (const call of calls) {
      const { id, process } = call;
      if (signal?.aborted) return false;
      // A sub-agent's commands are waited for when it is resumed.
      if (processes === "stop") for (const one of await this.#processesBelow(call)) await stopGroup(one);
      if (!process || !commands.get(id)?.running) continue;
      if (processes === "stop") {
        await stopGroup(process);
        this.#stoppedCalls.add(id);
        continue;
      }
      waits(process.pid);
      try {
        await waitForCommand(this.outputs, id, process, defined({ signal }));
      } catch (error) {
        if (signal?.aborted) return false;
        throw error;
      }
    }
    return true;
  }

  #processesBelow(call: OpenCall): Promise<ToolProcess[]> {
    const { store, trust } = this.#services;
    return processesBelow(store, trust, this.session.id, call);
  }

  get #policyContext(): PolicyContext {
    const config = configPath();
    const { url } = this.#services.store;
    const allOutputs = outputsFolder(url);
    const state = stateFolder();
    return {
      cwd: this.cwd,
      policy: this.policy,
      store: url,
      // It was a real folder when the session was opened. If it is a link now, its target must not count as ours.
      ...(isFolder(this.outputs) ? { outputs: this.outputs } : {}),
      ...(allOutputs === null ? {} : { allOutputs }),
      ...(state === null ? {} : { state: join(state, "holdfast") }),
      ...(config === null ? {} : { config: resolve(config) }),
      ...defined({ rules: this.#services.rules.path ?? undefined }),
    };
  }

  #verdict(call: { readonly toolName: string; readonly input: unknown }): Verdict {
    const decision = this.decide(call.toolName, call.input);
    if (decision.verdict === "allow") return { type: "not-applicable" };
    if (decision.verdict === "ask" && this.#services.asks === "person") return { type: "user-approval" };
    this.#events.denied(call, decision);
    return { type: "denied", reason: decision.denial };
  }

  #tools(turn: Turn<ModelMessage>, model: ResolvedModel, parked: ParkedCalls): ToolSet {
    const { config } = this.#services;
    const editor = this.#editor;
    const context: ToolContext = {
      cwd: this.cwd,
      ...(editor ? { editor: editor.files, terminals: editor.terminals } : {}),
      outputs: this.outputs,
      process: (call, process) => {
        // Save it here first: a process that only the journal names is not trusted.
        this.#trust.started(process);
        return turn.toolProcess(call, process);
      },
      output: this.#events.output,
      env: commandEnvironment(process.env, config.passEnv),
      passOver: makeSearchFilter(this.#policyContext),
      own: this.#own,
      watch: (call, name, input) => this.approvals.watch(call, { name, input }),
    };
    const tools: ToolSet = { ...makeTools(context), ...this.#serverTools(model) };
    if (this.#delegateTool) tools[DELEGATE] = this.#delegateTool(this, model, parked);
    Object.assign(tools, makeMissingTools(turn.open, tools));
    // Do this now: a started call is no longer open.
    const approved = turn.open.filter((call) => this.#trust.hasApproved(call));
    for (const [name, tool] of Object.entries(tools)) tools[name] = this.#reporting(name, tool, approved);
    return tools;
  }

  #serverTools(model: ResolvedModel): ToolSet {
    const servers = this.#servers;
    if (servers.length === 0) return {};
    return makeServerTools(joinServers(servers), {
      model,
      outputs: this.outputs,
      output: this.#events.output,
      leftOut: (count) =>
        this.#events.warned(
          `${count} tools of MCP servers are left out: their descriptions take too much of the model's window. Choose tools with "tools" in the configuration.`,
        ),
    });
  }

  /** The adapter records the start before it calls this, and the outcome afterwards. */
  #reporting(name: string, tool: ToolSet[string], approved: readonly OpenCall[]): ToolSet[string] {
    const { execute } = tool;
    if (!execute) return tool;
    const events = this.#events;
    return {
      ...tool,
      execute: async (input: unknown, options: { toolCallId: string }) => {
        assertMayRun({ name, input }, this.decide(name, input), approved);
        events.started(options.toolCallId, name, input);
        try {
          await this.approvals.watch(options.toolCallId, { name, input }).check();
          return await (execute as (input: unknown, options: unknown) => unknown)(input, options);
        } finally {
          this.#notes.ended(options.toolCallId);
          events.ended(options.toolCallId);
        }
      },
    } as ToolSet[string];
  }
}

function isFolder(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}
