import { resolve, sep } from "node:path";
import {
  AGENTS,
  Door,
  diagnose,
  type Finding,
  type FoundSession,
  problem,
  Refused,
  sessionsAt,
  sessionsHere,
} from "@holdfast/doctor";
import { CommandError, EXIT } from "../exit.ts";
import { homeFolder } from "../home.ts";
import type { SessionReport } from "./report.ts";
import { countSecrets } from "./secrets.ts";

/** The sessions that were named, or all of this machine. */
export async function* findSessions(paths: readonly string[], door: Door): AsyncGenerator<Finding> {
  const machine = { environment: process.env, home: homeFolder() ?? "/" };
  if (paths.length === 0) yield* sessionsHere(AGENTS, machine, door);
  for (const given of paths) {
    if (door.kindOf(resolve(given)) === null) yield sessionWithId(given, door);
    else yield* sessionsAt(resolve(given), AGENTS, machine, door);
  }
}

/** The session of this machine with an id, or the first or last characters of one. */
export function sessionWithId(given: string, door: Door): FoundSession {
  const here = [...sessionsHere(AGENTS, { environment: process.env, home: homeFolder() ?? "/" }, door)];
  const exact = here.filter(({ session }) => session.id === given);
  const matches =
    exact.length > 0 ? exact : here.filter(({ session: { id } }) => id.startsWith(given) || id.endsWith(given));
  if (matches.length === 1) return matches[0]!;
  const deleted = matches.length === 0 ? deletedSessions(door).filter(({ session: { id } }) => id === given) : [];
  if (deleted.length === 1) return deleted[0]!;
  const [code, what] =
    matches.length === 0
      ? ["PATH_UNKNOWN", `There is no file, and no session of another agent, called ${given}.`]
      : ["SESSION_AMBIGUOUS", `${matches.length} sessions match ${given}. Type more of the id.`];
  throw new CommandError(EXIT.notFound, code, `${what} Nothing was changed.`);
}

/** Sessions that were kept where an agent has them no more. Only an exact id brings one back. */
function deletedSessions(door: Door): FoundSession[] {
  const machine = { environment: process.env, home: homeFolder() ?? "/" };
  return (door.keptSessions?.() ?? []).flatMap(({ agent: name, id, path, parts }) => {
    const agent = AGENTS.find((each) => each.name === name);
    const homes = agent?.homes(machine.environment, machine.home) ?? [];
    const isOwn = homes.some((root) => path.startsWith(`${root}${sep}`)) && path === resolve(path);
    return agent && isOwn && door.kindOf(path) === null ? [{ agent, session: { agent: name, id, path, parts } }] : [];
  });
}

/** Reads one and judges it. A session that nobody can read stops no other. `run`: one door for all of them. */
export async function examine(
  { agent, session }: FoundSession,
  run: Door,
  { secrets }: { readonly secrets?: boolean } = {},
): Promise<SessionReport> {
  const known = { agent: agent.name, session: session.id, path: session.path };
  try {
    const diagnosis = await diagnose(agent, session, run);
    const report = { ...known, diagnosis, problems: diagnosis.problems };
    return secrets ? { ...report, secrets: await countSecrets({ agent, session }, run) } : report;
  } catch (error) {
    const detail = error instanceof Error ? error.message : String(error);
    const place = { file: session.path, line: null, offset: null };
    return { ...known, diagnosis: null, problems: [problem("unopenable", place, { detail })] };
  }
}

/** Folders in which there may be sessions, and which cannot be listed. */
export function refusedFolders(refusals: readonly Refused[]): SessionReport[] {
  return refusals.map(({ path, message }) => {
    const place = { file: path, line: null, offset: null };
    const fix = "None from here. The owner can: chmod u+rwx";
    const found = problem("unopenable", place, { detail: message, means: "The folder cannot be listed.", fix });
    return { agent: null, session: null, path, diagnosis: null, problems: [found] };
  });
}

/** A file of which no byte says whose it is: only an empty one is damage. */
export function unknownReport(path: string): SessionReport {
  using door = new Door();
  const report = { agent: null, session: null, path, diagnosis: null };
  const place = { file: path, line: null, offset: null };
  try {
    const file = door.openRaw(path);
    if (file.size === 0) return { ...report, problems: [problem("empty-file", place)] };
    if (file.read(0, 2 ** 16).every((byte) => byte === 0)) return { ...report, problems: [problem("nul-run", place)] };
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    return { ...report, problems: [problem("unopenable", place, { detail: error.message })] };
  }
  const message = `${path} is no session of an agent that this version knows. Nothing was changed.`;
  throw new CommandError(EXIT.notFound, "PATH_UNKNOWN", message);
}
