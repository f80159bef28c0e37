import { PassThrough } from "node:stream";
import type { Drive } from "@holdfast/acp/internal/wrap";
import type { Account } from "holdfast";
import { AgentPermission, outcomeFor } from "../acp/agent-permission.ts";
import { runWrapped } from "../acp/run-wrap.ts";
import type { Config } from "../config.ts";
import { defined } from "../defined.ts";
import { EXIT } from "../exit.ts";
import { exitCodeOf } from "../failure.ts";
import type { FailureShown } from "../host/host.ts";
import { shortId } from "../short-id.ts";
import { addressOf } from "../store/open.ts";
import { outlivePipe } from "../terminal/pipe.ts";
import { plainLine } from "../terminal/plain.ts";
import { shellQuoted, typedCommand } from "../typed-command.ts";
import { version } from "../version.ts";
import { AgentEvents } from "./agent-events.ts";
import { type AgentSession, accountAfter, agentSession } from "./agent-session.ts";
import { type Printer, printerFor } from "./print.ts";
import { promptOf, type RunOptions } from "./run.ts";

type Options = Pick<RunOptions, "prompt" | "resume" | "continue" | "stdin" | "finish" | "json" | "quiet"> & {
  readonly retry?: true;
  /** The store, if the command line names it. */
  readonly store?: string;
};

/**
 * Drives an agent that others wrote through one turn, without a person: this process is its editor, and wraps it.
 * Leaves the exit code in `process.exitCode`.
 */
export async function runAgent(command: readonly string[], options: Options, config: Config): Promise<void> {
  const prompt = options.finish ? null : await promptOf(options.prompt, options.stdin === true);
  // A reader that closes the pipe does not cancel the turn, which is still recorded to its end (C13).
  outlivePipe();
  process.exitCode = EXIT.failed;
  const rules = new AgentPermission(config, await addressOf(config));
  const session = await agentSession(command, options, config);
  const printer = await printerFor(options);
  const run = new AgentRun(command, { session, prompt, printer, rules, options, config });
  const { code, signal } = await run.run();
  process.exitCode = code;
  // Let the parent see which signal ended it.
  if (signal !== null) process.kill(process.pid, signal);
}

interface RunParts {
  readonly session: AgentSession | null;
  readonly prompt: string | null;
  readonly printer: Printer;
  readonly rules: AgentPermission;
  readonly options: Options;
  readonly config: Config;
}

interface RunEnd {
  readonly code: number;
  /** This process was told to end. */
  readonly signal: NodeJS.Signals | null;
}

class AgentRun {
  readonly #command: readonly string[];
  readonly #parts: RunParts;
  #journal: string | null;
  #denied = 0;

  constructor(command: readonly string[], parts: RunParts) {
    this.#command = command;
    this.#parts = parts;
    this.#journal = parts.session?.journal ?? null;
  }

  async run(): Promise<RunEnd> {
    const { session, prompt, printer, options, config } = this.#parts;
    const { Drive, RequestError } = await import("@holdfast/acp/internal/wrap");
    if (session) this.#begins(session);
    const events = new AgentEvents((event) => printer.event(event));
    const [toAgent, fromAgent] = [new PassThrough(), new PassThrough()];
    const drive = new Drive({
      ...{ input: fromAgent, output: toAgent, cwd: process.cwd(), version, prompt, retry: options.retry === true },
      session: session && { id: session.id, turns: session.turns },
      onCreated: (journal) => this.#created(journal),
      onUpdate: (update) => events.updated(update),
      onPermission: (request) => this.#permission(request),
    });
    const signals = new Signals(drive, toAgent);
    const settings = { graceMs: 0, direct: false, finish: "driven", ...defined({ store: options.store }) } as const;
    const stderr = options.quiet ? new PassThrough().resume() : process.stderr;
    const wrapped = runWrapped(this.#command, config, settings, { input: toAgent, output: fromAgent, stderr }).finally(
      () => fromAgent.end(),
    );
    const [driven, ended] = await Promise.allSettled([drive.run().finally(() => toAgent.end()), wrapped]);
    const signal = signals.stop();
    // The agent could not be started, or not be run.
    if (driven.status === "rejected" && ended.status === "rejected") throw ended.reason;
    if (driven.status === "rejected" && !(driven.reason instanceof RequestError)) throw driven.reason;
    const error = driven.status === "rejected" ? (driven.reason as InstanceType<typeof RequestError>) : null;
    const account = this.#journal === null ? null : await accountAfter(this.#journal, config);
    return { code: this.#ends(account, error, driven.status === "fulfilled" && driven.value), signal };
  }

  #begins({ journal, account, prompt }: AgentSession): void {
    const { printer } = this.#parts;
    this.#introduce(journal, true);
    const isCutOff = account.interruption !== null;
    const say = (text: string): void => printer.event({ type: "notice", level: "info", text });
    if (this.#parts.prompt !== null) {
      const finish = `To finish such a turn instead: ${typedCommand(this.#finishCommand(account))}`;
      if (isCutOff) say(`The previous turn did not complete (${account.words.status}) and stays unfinished. ${finish}`);
    } else if (isCutOff) {
      const turn = account.turn ?? 0;
      printer.event({ type: "turn.started", turn, prompt, resumed: true });
      for (const { name, words } of account.calls) say(`${plainLine(name)}: ${words}`);
    }
  }

  #created(journal: string): void {
    this.#journal = journal;
    this.#introduce(journal, false);
    this.#parts.printer.event({ type: "turn.started", turn: 1, prompt: this.#parts.prompt ?? "" });
  }

  #introduce(session: string, resumed: boolean): void {
    const model = this.#command.join(" ");
    this.#parts.printer.event({ type: "session", session, model, cwd: process.cwd(), resumed });
  }

  /** Nobody is asked: what no rule allows is denied, as in a run of our own agent without a terminal. */
  #permission(request: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
    const { verdict, summary, flag } = this.#parts.rules.judge(process.cwd(), request);
    if (verdict === "allow") return outcomeFor(request, true);
    this.#denied += 1;
    const why = verdict === "deny" ? "a rule denies it" : "no rule allows it, and nobody is here to ask";
    const how = flag === null ? "" : ` To allow it, pass ${flag}.`;
    const text = `Denied ${plainLine(summary)}: ${why}.${how}`;
    this.#parts.printer.event({ type: "notice", level: "warning", text });
    return outcomeFor(request, false);
  }

  /** What is recorded decides how it went. */
  #ends(account: Account | null, error: (Error & { readonly data?: unknown }) | null, isFinished: boolean): number {
    const { printer } = this.#parts;
    if (error === null && !isFinished) {
      printer.event({ type: "notice", level: "warning", text: "Nothing to finish: the last turn completed." });
      return EXIT.done;
    }
    const isDone = error === null && account?.state === "idle";
    const isStopped = account?.state === "stopped" || account?.state === "paused";
    const shown = error !== null && account ? failureShown(error, account) : null;
    const failure = isDone || (isStopped && error === null) ? null : (shown ?? stateShown(account));
    const outcome = isDone ? "completed" : failure === null ? "aborted" : "failed";
    printer.event({ ...{ type: "turn.ended", outcome, denied: this.#denied }, ...(failure ? { error: failure } : {}) });
    if (this.#journal !== null) printer.end(this.#journal, this.#finishCommand(account));
    if (isDone) return this.#denied > 0 ? EXIT.denied : EXIT.done;
    return failure === null ? EXIT.failed : exitCodeOf(failure.code);
  }

  #finishCommand(account: Account | null): string {
    const agent = shellQuoted(this.#command.map(shellQuoted).join(" "));
    const retry = account?.state === "parked" ? " --retry" : "";
    return `run --agent ${agent} --resume ${shortId(this.#journal ?? "")} --finish${retry}`;
  }
}

function stateShown(account: Account | null): FailureShown {
  if (account === null) return { code: "AGENT_FAILED", message: "The agent made no session. Nothing was recorded." };
  const code = account.state === "parked" ? "TURN_PARKED" : "AGENT_FAILED";
  return { code, message: `The turn is not finished: ${account.words.status}. Everything up to there is recorded.` };
}

function failureShown(error: Error & { readonly data?: unknown }, account: Account): FailureShown {
  const { code } = (error.data ?? {}) as { readonly code?: unknown };
  const { prompt } = account.can;
  if (code === "SESSION_BUSY" && prompt !== true)
    return { code, message: `Another process drives this session. ${prompt.words} Nothing was sent to the agent.` };
  if (code === "LEASE_LOST") {
    const words =
      "Another process has taken this session over while this one was stopped. Its agent was ended, and nothing that it did since is recorded.";
    return { code, message: words };
  }
  if (code === "TURN_PARKED") return stateShown(account);
  return { code: typeof code === "string" ? code : "AGENT_FAILED", message: plainLine(error.message) };
}

/** What ends this process. The first Ctrl+C stops the turn; the other signals hand it over to the next process. */
class Signals {
  #got: NodeJS.Signals | null = null;
  readonly #listeners: ReadonlyMap<NodeJS.Signals, () => void>;

  constructor(drive: Drive, toAgent: PassThrough) {
    const take = (signal: NodeJS.Signals, act: () => void): readonly [NodeJS.Signals, () => void] => [
      signal,
      () => {
        this.#got ??= signal;
        act();
      },
    ];
    this.#listeners = new Map([
      take("SIGINT", () => void drive.cancel()),
      take("SIGTERM", () => void toAgent.end()),
      take("SIGHUP", () => void toAgent.end()),
    ]);
    for (const [signal, listener] of this.#listeners) process.once(signal, listener);
  }

  stop(): NodeJS.Signals | null {
    for (const [signal, listener] of this.#listeners) process.off(signal, listener);
    return this.#got;
  }
}
