import { mkdirSync, readFileSync, rmSync } from "node:fs";
import { dirname } from "node:path";
import type { Agent, SessionPlace } from "../contract/agent.ts";
import { type Door, Refused } from "../files/door.ts";
import { covers } from "./covers.ts";
import { isCurrent, type KeepOptions, type KeepOutcome, keepFile } from "./kept-file.ts";
import { keepRows } from "./kept-rows.ts";
import { rowsTargetOf, targetOf } from "./names.ts";

/** What became of the files of a session since they were kept last. */
export interface KeptFiles {
  readonly files: readonly (KeepOutcome & { readonly path: string })[];
  /** Rows that were added, of a session in a database that it shares. */
  readonly rows: number;
  /** Files that could not be opened, and why. */
  readonly refused: readonly Refused[];
}

/** A larger file that is one object of JSON is not searched for what its older version had. */
const OBJECT_BYTES_MAX = 2 ** 26;

/**
 * Keeps the files of a session in its folder, as they are; of a database that other sessions share, its rows. A file
 * that cannot be opened stops no other. Throws errors of the system, such as a full disk.
 */
export async function keepSession(
  agent: Agent,
  session: SessionPlace,
  folder: string,
  run: Door,
  options: KeepOptions = { isThorough: true },
): Promise<KeptFiles> {
  using door = run.inner();
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const files: KeptFiles["files"][number][] = [];
  const refused: Refused[] = [];
  let rows = 0;
  if (session.isShared) rows = keepRows(await agent.read(session, door), rowsTargetOf(folder, session), door);
  for (const path of session.isShared ? session.parts : [session.path, ...session.parts]) {
    try {
      const outcome = await keepOne(path, targetOf(folder, session, path), door, options);
      if (outcome !== null) files.push({ path, ...outcome });
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      refused.push(error);
    }
  }
  return { files, rows, refused };
}

/** Null if all of it is kept. */
async function keepOne(path: string, target: string, run: Door, options: KeepOptions): Promise<KeepOutcome | null> {
  using door = run.inner();
  const facts = door.facts(path);
  if (facts === null) throw new Refused(path, "it is not there");
  if (!options.isForced && isCurrent(target, facts)) return null;
  const file = door.openRaw(path);
  mkdirSync(dirname(target), { recursive: true, mode: 0o700 });
  const outcome = await keepFile(file, facts, target, options);
  const { epoch, size } = outcome;
  if (epoch === null || !path.endsWith(".json") || Math.max(size, outcome.before) > OBJECT_BYTES_MAX) return outcome;
  if (!covers(readFileSync(target, "utf8"), readFileSync(epoch, "utf8"))) return outcome;
  // Such a file is rewritten each time: without this, its copies would grow with the square of its size.
  rmSync(epoch);
  return { ...outcome, change: "grown", epoch: null };
}
