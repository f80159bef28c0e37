import { join } from "node:path";
import { type Door, readState } from "@holdfast/doctor";
import { idFrom } from "holdfast";
import { type Flags, loadConfig } from "../config.ts";
import { makeOwnFolder } from "../own-folder.ts";
import { addressOf } from "../store/open.ts";
import { existingOutputs, outputsFolder, sessionOutputs } from "../store/output-folders.ts";

/** Where the files of another agent's session are kept: beside the store, with the outputs of the imported session. */

const NAME = "originals";
const ID = /^[0-9a-f-]{36}$/;

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
export async function showKeptFiles(door: Door, flags: Flags): Promise<void> {
  const address = await addressOf(loadConfig(flags));
  door.keptFolderOf = (agent, session) => findKeptFolder(address, agent, session);
  door.keptSessions = () => {
    const outputs = outputsFolder(address);
    const ids = outputs === null ? [] : [...door.list(outputs)].map(({ name }) => name);
    return ids.flatMap((id) => {
      const own = ID.test(id) ? existingOutputs(address, id) : null;
      const place = own && readState(join(own, NAME), door).place;
      // The id is made of what the place says: anything else is not ours.
      return place && importedId(place.agent, place.id) === id ? [place] : [];
    });
  };
}
