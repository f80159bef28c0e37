import type { SessionPlace } from "../contract/agent.ts";
import type { Change } from "../contract/plan.ts";
import { type Problem, problem } from "../contract/problem.ts";
import type { Door } from "../files/door.ts";

/** What its owner must be able to do with a file of a session: read and write it. */
const NEEDED = 0o600;

/** The files of a session that the agent cannot read or cannot write. */
export function permissionProblems({ path, parts }: SessionPlace, door: Door): Problem[] {
  return [path, ...parts].flatMap((file) => {
    const facts = door.facts(file);
    if (facts === null || (facts.mode & NEEDED) === NEEDED) return [];
    const detail = `its permissions are ${facts.mode.toString(8).padStart(3, "0")}`;
    return [problem("wrong-permissions", { file, line: null, offset: null }, { detail })];
  });
}

/** What is in the files shows when they can be read: nothing else is changed with this. */
export function restorePermissions(problems: readonly Problem[], door: Door): Change[] {
  return problems.flatMap(({ kind, place }) => {
    const mode = kind === "wrong-permissions" ? door.facts(place.file)?.mode : undefined;
    const why = "restores the owner's permission to read and write";
    return mode === undefined ? [] : [{ type: "mode", path: place.file, mode: mode | NEEDED, why } as const];
  });
}
