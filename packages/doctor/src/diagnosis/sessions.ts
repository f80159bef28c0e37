import { isAbsolute, join, relative } from "node:path";
import type { Agent, Environment, SessionPlace } from "../contract/agent.ts";
import type { Door } from "../files/door.ts";
import { agentOf, candidateAt } from "./candidate.ts";

const DEPTH_MAX = 12;

/** A session, and whose it is. */
export interface FoundSession {
  readonly agent: Agent;
  readonly session: SessionPlace;
}

/** A session, or a path of which it is not known whose it is. */
export type Finding = FoundSession | { readonly agent: null; readonly session: null; readonly path: string };

export interface Machine {
  readonly environment: Environment;
  readonly home: string;
}

/** The sessions where the agents keep them on this machine. */
export function* sessionsHere(
  agents: readonly Agent[],
  { environment, home }: Machine,
  door: Door,
): Generator<FoundSession> {
  for (const agent of agents) {
    for (const root of new Set(agent.homes(environment, home)))
      for (const session of agent.find(root, door)) yield { agent, session };
  }
}

/** The sessions in a file or folder that the user named: by their content, wherever they lie. */
export async function* sessionsAt(
  path: string,
  agents: readonly Agent[],
  machine: Machine,
  door: Door,
): AsyncGenerator<Finding> {
  const owner = agents.find((agent) =>
    agent.homes(machine.environment, machine.home).some((root) => isWithin(path, root)),
  );
  if (owner) {
    for (const session of owner.find(path, door)) yield { agent: owner, session };
    return;
  }
  yield* new Search(agents, door).in(path, 0);
}

class Search {
  readonly #agents: readonly Agent[];
  readonly #door: Door;
  /** Files that belong to sessions that were found: no sessions of their own. */
  readonly #parts = new Set<string>();

  constructor(agents: readonly Agent[], door: Door) {
    this.#agents = agents;
    this.#door = door;
  }

  async *in(path: string, depth: number): AsyncGenerator<Finding> {
    if (this.#parts.has(path)) return;
    const candidate = await candidateAt(path, this.#door);
    const agent = candidate && agentOf(candidate, this.#agents);
    if (agent) {
      for (const session of agent.find(path, this.#door)) {
        for (const part of session.parts) this.#parts.add(part);
        yield { agent, session };
      }
    } else if (candidate?.isFolder) {
      if (depth === DEPTH_MAX) return;
      const entries = [...this.#door.list(path)];
      // Files first: what is in a folder beside a session may be a part of it.
      for (const kind of ["file", "folder"])
        for (const entry of entries) if (entry.kind === kind) yield* this.in(entry.path, depth + 1);
    } else if (depth === 0) yield { agent: null, session: null, path };
  }
}

function isWithin(path: string, root: string): boolean {
  const way = relative(root, path);
  return way === "" || (!way.startsWith("..") && !isAbsolute(way)) || path === join(root);
}
