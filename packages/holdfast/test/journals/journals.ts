import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Account } from "../../src/account/account.ts";
import type { Act } from "../../src/account/acts.ts";
import type { CallState } from "../../src/account/words.ts";
import type { CallDecision } from "../../src/view/decide-call.ts";
import { type Expected, type Life, lives, type Voice } from "./lives.ts";

/** A killed session of the store, and what every surface must say of it. */
export interface Journal extends Pick<Life, "name" | "expected"> {
  readonly id: string;
}

/** The policy under which the table says what happens to each call. */
export const POLICY = { runs: true, asks: true } as const;

interface Writing {
  readonly dialect?: Voice["dialect"];
  /** Of every session; `<name>` stands for its name. */
  readonly labels?: Readonly<Record<string, string>>;
}

/** The sessions of `lives.ts` in a folder store, written by the program `app`, which worked in `cwd` and was killed. */
export async function writeJournals(
  folder: string,
  app: string,
  cwd = folder,
  { dialect = "ai-sdk", labels = {} }: Writing = {},
): Promise<Journal[]> {
  const program = join(import.meta.dirname, "program.ts");
  const child = spawn(
    process.execPath,
    ["--conditions=holdfast-source", program, ...[folder, app, cwd, dialect, JSON.stringify(labels)]],
    {
      stdio: ["ignore", "pipe", "inherit"],
    },
  );
  const ended = once(child, "close");
  let ids: Readonly<Record<string, string>> | null = null;
  for await (const line of createInterface(child.stdout)) {
    ids = JSON.parse(line) as Record<string, string>;
    break;
  }
  child.kill("SIGKILL");
  await ended;
  if (!ids) throw new Error("the program that writes the journals has failed");
  const known = ids;
  return lives().map(({ name, expected }) => ({ name, expected, id: known[name]! }));
}

/** What every surface must agree on. */
export interface Gist {
  readonly state: string;
  readonly calls: Readonly<Record<string, readonly [CallState, CallDecision?]>>;
  /** The calls that were settled by asking the service. */
  readonly settled: readonly string[];
  /** What can be done now. */
  readonly choices: readonly string[];
}

/**
 * What the table says of a session that nobody has open, to the program that wrote it or to another one. `decides`: the
 * account tells what happens to each call.
 */
export function expectedGist(
  { state, calls, settled = [] }: Expected,
  asking: "writer" | "another",
  { decides = true }: { readonly decides?: boolean } = {},
): Gist {
  const isWaiting = state === "waiting" || Object.values(calls).some(([, onFinish]) => onFinish === "wait");
  const retry: Act[] = state === "parked" ? ["retry"] : [];
  const unfinished: Act[] = state === "idle" ? [] : ["finish", ...retry, "leave"];
  const own: Act[] = ["prompt", ...unfinished, ...(isWaiting ? (["answer"] as const) : []), "fork"];
  const shown = decides ? calls : Object.fromEntries(Object.entries(calls).map(([id, [how]]) => [id, [how] as const]));
  return { state, calls: shown, settled, choices: asking === "writer" ? own : ["fork", "takeOver"] };
}

/** What an account says, also one that came over the wire. */
export function gistOf({ state, calls, settled, can }: Pick<Account, "state" | "calls" | "settled" | "can">): Gist {
  return {
    state,
    calls: Object.fromEntries(
      calls.map(({ id, state, onFinish }) => [id, onFinish === undefined ? [state] : [state, onFinish]]),
    ),
    settled: settled.filter(({ source }) => source === "probe").map(({ id }) => id),
    choices: Object.entries(can).flatMap(([act, answer]) => (answer === true ? [act] : [])),
  };
}
