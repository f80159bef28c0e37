import { Door, readState } from "@holdfast/doctor";
import type { Flags } from "../config.ts";
import { familyOf } from "../store/children.ts";
import { withStore } from "../store/open.ts";
import { touchOutputs } from "../store/output-folders.ts";
import { allSessions } from "../store/session-id.ts";
import { findKeptFolder } from "./kept-folder.ts";

/** A session of an agent that deleted it. */
export interface ForgottenSession {
  readonly id: string;
  readonly agent: string;
  readonly session: string;
}

/** Moves the sessions that their agents deleted to the trash, with those of their sub-agents. */
export async function forgetDeleted(flags: Flags): Promise<readonly ForgottenSession[]> {
  using door = new Door();
  return await withStore(flags, async (store) => {
    const gone: ForgottenSession[] = [];
    for await (const { id, labels = {}, parent } of allSessions(store)) {
      const { imported: agent, "imported-session": session } = labels;
      if (agent === undefined || session === undefined || parent) continue;
      const folder = findKeptFolder(store.url, agent, session);
      if (folder !== null && readState(folder, door).isDeleted) gone.push({ id, agent, session });
    }
    for (const { id } of gone)
      for (const each of [...(await familyOf(store, id)), id]) {
        await store.delete(each);
        touchOutputs(store.url, each);
      }
    return gone;
  });
}
