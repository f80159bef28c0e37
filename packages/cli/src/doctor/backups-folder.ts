import { isAbsolute, join } from "node:path";
import { CommandError, EXIT } from "../exit.ts";
import { homeFolder } from "../home.ts";
import { makeOwnFolder } from "../own-folder.ts";

/** Where the doctor keeps what it replaced: beside the default store, never in a folder of an agent. */
export function backupsFolder(env: Readonly<Record<string, string | undefined>> = process.env): string {
  const given = env["XDG_DATA_HOME"] ?? "";
  const home = homeFolder();
  const root = isAbsolute(given) ? given : home && join(home, ".local", "share");
  if (root === null)
    throw new CommandError(
      EXIT.usage,
      "NO_BACKUPS",
      "There is no home folder for backups. Set XDG_DATA_HOME. Nothing was changed.",
    );
  return makeOwnFolder(root, ["holdfast-doctor"]);
}
