import { join } from "node:path";
import type { Door } from "@holdfast/doctor";
import { idFrom } from "holdfast";
import type { Config } from "../config.ts";
import { makeOwnFolder } from "../own-folder.ts";
import { addressOf } from "../store/open.ts";
import { existingOutputs, sessionOutputs } from "../store/output-folders.ts";

/** Where the files of another agent's session are kept: beside the store, with the outputs of the imported session. */

const NAME = "originals";

/** The session of Holdfast that holds one of another agent, or the conversation of one of its sub-agents. */
export const importedId = (agent: string, session: string, thread?: string): string =>
  idFrom(`holdfast import ${agent} ${session}${thread === undefined ? "" : ` ${thread}`}`);

/** It is created if it is missing. Null if the store has no place for files. */
export function makeKeptFolder(storeUrl: string, agent: string, session: string): string | null {
  const outputs = sessionOutputs(storeUrl, importedId(agent, session));
  return outputs && makeOwnFolder(outputs, [NAME]);
}

/** The same if it is there. */
export function findKeptFolder(storeUrl: string, agent: string, session: string): string | null {
  const outputs = existingOutputs(storeUrl, importedId(agent, session));
  return outputs && join(outputs, NAME);
}

/** Lets the doctor find what was kept of a session. */
export async function showKeptFiles(door: Door, config: Pick<Config, "store">): Promise<void> {
  const address = await addressOf(config);
  door.keptFolderOf = (agent, session) => findKeptFolder(address, agent, session);
}
