import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { closeSync, writeSync } from "node:fs";
import { constants } from "node:os";
import type { Readable, Writable } from "node:stream";
import type { ShimEnd } from "@holdfast/acp/internal/shim";
import type { Permit, WrapOptions } from "@holdfast/acp/internal/wrap";
import type { Store } from "holdfast";
import type { Config } from "../config.ts";
import { evidenceIn } from "../evidence/wrapped-calls.ts";
import { CommandError, EXIT } from "../exit.ts";
import { failureOf } from "../failure.ts";
import { addressOf, redaction } from "../store/open.ts";
import { loadStorePackage } from "../store/store-package.ts";
import { outlivePipe } from "../terminal/pipe.ts";
import { plainLine } from "../terminal/plain.ts";
import { logPath, openLog, removeRandomFolder, socketFolder } from "./wrap-place.ts";

export interface WrapSettings {
  /** How long the agent waits for an editor to come back, and a turn goes on without one. */
  readonly graceMs: number;
  /** The agent is a child of this process. */
  readonly direct: boolean;
  /** The store, if the command line names it. A password in the configuration does not get there. */
  readonly store?: string;
  /** This process is a supervisor, and listens on this socket. */
  readonly supervise?: string;
  /**
   * Turns that were cut off go on by themselves: whenever an editor opens their session, or only in the session that
   * our own driver works on.
   */
  readonly finish?: "on load" | "driven";
  /** The rules of the command line, for the supervisor: it reads the rest of the configuration by itself. */
  readonly rules?: Partial<Pick<Config, "allow" | "ask" | "deny">>;
}

/** Whoever talks to the agent: an editor through this process, or our own driver in it. */
export interface WrapStreams {
  readonly input: Readable;
  readonly output: Writable;
  /** For what the agent logs. */
  readonly stderr: Writable;
}

const log = (line: string): void => void process.stderr.write(`holdfast: ${plainLine(line)}\n`);

/** Leaves the agent's exit code in `process.exitCode`. */
export async function runWrap(command: readonly string[], config: Config, settings: WrapSettings): Promise<void> {
  if (settings.supervise !== undefined) return supervise(command, config, settings.supervise, settings);
  // A person signs in to the agent: the editor starts the same command in a terminal.
  if (process.stdin.isTTY) return passThrough(command);
  await runWrapped(command, config, settings, {
    ...{ input: process.stdin, output: process.stdout, stderr: process.stderr },
  });
  // Standard input may still be open.
  process.stdin.destroy();
}

/**
 * Leaves the agent's exit code in `process.exitCode`. Resolves when the agent and everything that it started has ended.
 */
export async function runWrapped(
  command: readonly string[],
  config: Config,
  settings: WrapSettings,
  streams: WrapStreams,
): Promise<void> {
  // Windows editors kill by job, which a supervisor does not survive either.
  const isDirect = settings.direct || process.platform === "win32";
  return isDirect ? runDirectly(command, config, settings, streams) : runShim(command, config, settings, streams);
}

async function runShim(
  command: readonly string[],
  config: Config,
  { graceMs, store, finish, rules }: WrapSettings,
  streams: WrapStreams,
): Promise<void> {
  const { agentKey, Shim, SOCKET_NAME_CHARS, SOCKET_PATH_BYTES_MAX } = await import("@holdfast/acp/internal/shim");
  const address = await addressOf(config);
  const folder = socketFolder({ nameChars: SOCKET_NAME_CHARS, pathBytesMax: SOCKET_PATH_BYTES_MAX });
  const again = [process.execPath, ...process.execArgv, process.argv[1]!, "wrap"];
  if (store !== undefined) again.push("--store", store);
  const finishing = finish === undefined ? [] : [finish === "driven" ? "--driven" : "--finish", ...ruleFlags(rules)];
  again.push(...finishing);
  // A driver's agent is for no other.
  const isAlone = finish === "driven";
  const others = isAlone ? [randomUUID()] : finishing;
  const shim = new Shim({
    ...{ folder, key: agentKey([...command, ...others], address), logFile: openLog(), startsClean: isAlone },
    ...streams,
    supervisor: (socket) => [...again, "--grace", String(graceMs / 1000), "--supervise", socket, "--", ...command],
  });
  const end = await shim.run().catch((error: unknown) => {
    throw notSupervised(error);
  });
  process.exitCode = exitCodeOf(end, command);
}

function ruleFlags(rules: WrapSettings["rules"] = {}): string[] {
  return (["allow", "ask", "deny"] as const).flatMap((kind) =>
    (rules[kind] ?? []).flatMap((rule) => [`--${kind}`, rule]),
  );
}

function exitCodeOf(end: ShimEnd, command: readonly string[]): number {
  if (end.type === "ended") return statusOf(end);
  if (end.type === "failed") throw startFailure(command, Object.assign(new Error(end.message), end));
  throw notSupervised(new Error(end.why));
}

function notSupervised(error: unknown): CommandError {
  const why = error instanceof Error ? error.message : String(error);
  const place = logPath();
  const message = `The process that runs and records the agent is gone: ${plainLine(why)}. What was recorded is safe. ${
    place === null ? "" : `Its log is ${place}. `
  }Start the agent again, or use "holdfast wrap --direct".`;
  return new CommandError(EXIT.failed, "SUPERVISOR_LOST", message, error);
}

async function runDirectly(
  command: readonly string[],
  config: Config,
  { graceMs, finish }: WrapSettings,
  { input, output }: WrapStreams,
): Promise<void> {
  const { Library, runDirect, WrappedAgent } = await import("@holdfast/acp/internal/wrap");
  const store = await openWrapStore(config);
  // An editor that is gone reads nothing: the turn still has to be cancelled and recorded, and the agent ended.
  outlivePipe();
  try {
    for (const warning of store.warnings) log(warning);
    const agent = new WrappedAgent({
      command,
      log,
      library: new Library(store, command, { evidence: evidenceIn(store.url) }),
      ...(await finishingOf(finish, config)),
    });
    const ended = await runDirect(agent, input as AsyncIterable<Buffer>, output, graceMs).catch((error: unknown) => {
      throw startFailure(command, error);
    });
    process.exitCode = statusOf(ended);
  } finally {
    await store.close();
  }
}

async function supervise(
  command: readonly string[],
  config: Config,
  socket: string,
  { graceMs, finish }: WrapSettings,
): Promise<void> {
  const say = (line: string): void =>
    void process.stderr.write(`${new Date().toISOString()} ${process.pid} ${plainLine(line)}\n`);
  try {
    const { dirname } = await import("node:path");
    const { Library, retire, Supervisor, WrappedAgent } = await import("@holdfast/acp/internal/wrap");
    const store = await openWrapStore(config);
    try {
      for (const warning of store.warnings) say(warning);
      const library = new Library(store, command, {
        free: (pid) => retire(dirname(socket), pid),
        evidence: evidenceIn(store.url),
      });
      const finishing = await finishingOf(finish, config);
      const supervisor = new Supervisor({
        ...{ socket, graceMs, log: say, onReady: () => report("ready\n") },
        wrap: (hooks) => new WrappedAgent({ command, library, ...finishing, ...hooks }),
      });
      for (const signal of ["SIGTERM", "SIGHUP", "SIGINT"] as const)
        process.on(signal, () => void supervisor.stop(`${signal}: ending the agent`));
      await supervisor.run();
    } finally {
      await store.close();
      removeRandomFolder(socket);
    }
  } catch (error) {
    say(`failed: ${failureOf(error).message}`);
    report(`${failureOf(error).message}\n`);
    process.exitCode = EXIT.failed;
  }
  // Everything is written and closed, and nothing may keep this process.
  process.exit();
}

async function finishingOf(finish: WrapSettings["finish"], config: Config): Promise<Pick<WrapOptions, "finishing">> {
  // A driver decides about permissions itself, and says so.
  if (finish !== "on load") return finish === undefined ? {} : { finishing: { onLoad: false, permit: () => null } };
  const { AgentPermission, outcomeFor } = await import("./agent-permission.ts");
  const rules = new AgentPermission(config, await addressOf(config));
  const permit: Permit = (cwd, request) => {
    const { verdict } = rules.judge(cwd, request);
    return verdict === "ask" ? null : outcomeFor(request, verdict === "allow");
  };
  return { finishing: { onLoad: true, permit } };
}

let hasReported = false;

/** To the shim that started this process. */
function report(text: string): void {
  if (hasReported) return;
  hasReported = true;
  try {
    writeSync(3, text);
    closeSync(3);
  } catch {
    // The shim was killed meanwhile.
  }
}

export async function openWrapStore(config: Config): Promise<Store> {
  const { openStore } = await import("holdfast");
  const address = await addressOf(config);
  await loadStorePackage(address, config);
  return openStore(address, { durability: "process", ...redaction(config) });
}

function statusOf({ code, signal }: { readonly code: number | null; readonly signal: NodeJS.Signals | null }): number {
  return code ?? 128 + constants.signals[signal ?? "SIGTERM"];
}

async function passThrough([command = "", ...args]: readonly string[]): Promise<void> {
  const child = spawn(command, args, { stdio: "inherit" });
  process.exitCode = await new Promise<number>((resolve, reject) => {
    child.once("error", (error) => reject(startFailure([command], error)));
    child.once("close", (code, signal) => resolve(statusOf({ code, signal })));
  });
}

function startFailure([command = ""]: readonly string[], error: unknown): unknown {
  const { code, syscall } = error as NodeJS.ErrnoException;
  if (!syscall?.startsWith("spawn")) return error;
  const why =
    code === "ENOENT" ? "no such command" : code === "EACCES" ? "it may not be executed" : (code ?? "unknown");
  const message = `The agent "${plainLine(command)}" could not be started: ${why}. Nothing was touched.`;
  return new CommandError(EXIT.notFound, "AGENT_NOT_STARTED", message, error);
}
