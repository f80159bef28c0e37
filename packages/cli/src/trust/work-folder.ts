import { CommandError, EXIT } from "../exit.ts";
import { plainLine } from "../terminal/plain.ts";
import { realPath } from "../tools/paths/real-path.ts";

export interface Folders {
  readonly session: string;
  /** The folder in the journal. */
  readonly journal: string | undefined;
  /** Where this user has worked with the session before. */
  readonly known: string | null;
  /** The user's current folder. */
  readonly now: string;
  /** The user wants to work in the current folder, regardless of the journal. */
  readonly isHere: boolean;
}

/**
 * The folder that tools work in. Never one that only the journal names: its author could pick any of this user's
 * folders. It counts if the user is in it now, or has worked with this session there before. Throws CommandError
 * FOLDER_UNKNOWN.
 */
export function folderFor({ session, journal, known, now, isHere }: Folders): string {
  if (isHere) return now;
  if (known !== null) return known;
  if (journal === undefined || (leadsTo(now, journal) ?? "") === leadsTo(now, now)) return now;
  const place = plainLine(journal);
  const message = `Session ${session} names the folder ${place}, but you have not used the session there and are not there now. A journal may come from someone else, so its folder is not trusted. Nothing was run. If you trust it: cd '${place.replaceAll("'", `'\\''`)}' and try again; or give --here to work in ${plainLine(now)}.`;
  throw new CommandError(EXIT.usage, "FOLDER_UNKNOWN", message);
}

/** Null if that cannot be determined. */
function leadsTo(now: string, path: string): string | null {
  try {
    return realPath(now, path);
  } catch (error) {
    if (error instanceof Error) return null;
    throw error;
  }
}
