import { basename, dirname, join } from "node:path";
import type { SessionPlace } from "../../contract/agent.ts";
import type { Change } from "../../contract/plan.ts";
import { type Door, type FolderEntry, Refused } from "../../files/door.ts";

/** The folder of a project: its path, with `-` for every character that is no letter or digit. */
const folderFor = (cwd: string): string => cwd.replaceAll(/[^a-zA-Z0-9]/g, "-");
/** Longer names are cut off here, and end in a number made of the whole. */
const NAME_MAX = 200;
const CWDS_MAX = 100;
const DEPTH_MAX = 40;

/** Sees the working folders that the records of a session name, and knows whether it lies where Claude Code looks. */
export class WorkingFolders {
  readonly #session: SessionPlace;
  readonly #folder: string;
  readonly #cwds = new Set<string>();
  /** Only in the agent's own folders do names mean anything. */
  #isOpen: boolean;

  constructor(session: SessionPlace) {
    this.#session = session;
    const folder = dirname(session.path);
    this.#folder = basename(folder);
    this.#isOpen = basename(dirname(folder)) === "projects" && /^(?:-|[A-Za-z]--)/.test(this.#folder);
  }

  add(cwd: unknown): void {
    if (!this.#isOpen || typeof cwd !== "string" || cwd === "" || this.#cwds.has(cwd)) return;
    this.#cwds.add(cwd);
    if (isFolderOf(this.#folder, cwd) || this.#cwds.size > CWDS_MAX) this.#isOpen = false;
  }

  /**
   * The folder that the session belongs in; null if it lies well. A folder that was renamed with its project, or came
   * from another machine, is no mistake: the right one must be known here, and this one must be of nothing that is.
   */
  right(door: Door): string | null {
    const [cwd] = this.#cwds;
    if (!this.#isOpen || cwd === undefined) return null;
    const name = folderFor(cwd);
    const right = join(dirname(dirname(this.#session.path)), name);
    const isKnown = name.length <= NAME_MAX && (door.kindOf(right) === "folder" || door.kindOf(cwd) === "folder");
    // A copy of a session that lies there is somebody's own doing.
    if (!isKnown || door.kindOf(join(right, basename(this.#session.path))) !== null) return null;
    return isFolderOnDisk(this.#folder, "/", door) ? null : right;
  }
}

/** Moves the session and what is beside it to another folder. */
export function movedTo(folder: string, { path }: SessionPlace, door: Door): readonly Change[] {
  const why = "moves the session to the folder of its project";
  return [path, path.replace(/\.jsonl$/, "")]
    .map((from) => ({ type: "move", path: from, to: join(folder, basename(from)), why }) as const)
    .filter((change) => door.kindOf(change.path) !== null && door.kindOf(change.to) === null);
}

function isFolderOf(folder: string, cwd: string): boolean {
  const name = folderFor(cwd);
  return folder === name || (name.length > NAME_MAX && folder.startsWith(name.slice(0, NAME_MAX)));
}

function foldersIn(folder: string, door: Door): readonly FolderEntry[] {
  try {
    return [...door.list(folder)];
  } catch (error) {
    if (error instanceof Refused) return [];
    throw error;
  }
}

/** Whether a folder of this machine has this name. */
function isFolderOnDisk(name: string, at: string, door: Door, depth = 0): boolean {
  if (folderFor(at) === name) return true;
  if (depth > DEPTH_MAX) return false;
  return foldersIn(at, door).some(({ path, kind }) => {
    const own = folderFor(path);
    return (
      kind === "folder" && (own === name || name.startsWith(`${own}-`)) && isFolderOnDisk(name, path, door, depth + 1)
    );
  });
}
