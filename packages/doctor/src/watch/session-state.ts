import { renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fieldsOf, listIn, textIn } from "../contract/shapes.ts";
import { type Door, type KeptPlace, Refused } from "../files/door.ts";
import { WATCH_STATE } from "../keep/names.ts";

/** What is known of a session from the last look at it, also after a restart: what was said once is not said again. */
export interface SessionState {
  /** Its files, with their sizes and times, when its conversation was brought into the store last. */
  readonly brought: string | null;
  /** Where it was; null if that was not noted. */
  readonly place: KeptPlace | null;
  /** The agent deleted it. */
  readonly isDeleted: boolean;
  /** The kinds of problems that were found in it. */
  readonly problems: readonly string[];
}

export const NO_STATE: SessionState = { brought: null, place: null, isDeleted: false, problems: [] };
const STATE_BYTES_MAX = 2 ** 20;

/** A file that a kill cut off, or that somebody else wrote, says nothing: then all is looked at again. */
export function readState(folder: string, run: Door): SessionState {
  using door = run.inner();
  try {
    const text = Buffer.from(door.openRaw(join(folder, WATCH_STATE)).read(0, STATE_BYTES_MAX)).toString("utf8");
    const { brought, place, isDeleted, problems } = fieldsOf(JSON.parse(text));
    return {
      brought: textIn(brought),
      place: placeIn(place),
      isDeleted: isDeleted === true,
      problems: listIn(problems).flatMap((kind) => textIn(kind) ?? []),
    };
  } catch (error) {
    if (error instanceof Refused || error instanceof SyntaxError) return NO_STATE;
    throw error;
  }
}

function placeIn(value: unknown): SessionState["place"] {
  const fields = fieldsOf(value);
  const [agent, id, path] = [textIn(fields["agent"]), textIn(fields["id"]), textIn(fields["path"])];
  if (agent === null || id === null || path === null) return null;
  return { agent, id, path, parts: listIn(fields["parts"]).flatMap((part) => textIn(part) ?? []) };
}

export function writeState(folder: string, state: SessionState): void {
  const path = join(folder, WATCH_STATE);
  try {
    writeFileSync(`${path}.tmp`, `${JSON.stringify(state)}\n`, { mode: 0o600 });
    renameSync(`${path}.tmp`, path);
  } catch (error) {
    rmSync(`${path}.tmp`, { force: true });
    throw error;
  }
}
