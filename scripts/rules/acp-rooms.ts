import type { PackageRooms } from "./rooms.ts";

/** The rooms of the package for editors. */
export const ACP_ROOMS: PackageRooms = {
  sources: "packages/acp/src/",
  base: [],
  rooms: {
    // An agent behind `Host`, as an editor sees it.
    "agent/": [],
    // What has changed in a folder since a call began.
    "evidence/": [],
    // The record of an agent's sessions, and how an agent gets one back.
    "record/": ["evidence/"],
    // A proxy between an editor and an agent that nobody can change.
    "wrap/": ["record/"],
    // A decorator for the stream of an agent in the same process, on the same record of sessions.
    "durable/": ["record/"],
    // One turn of a wrapped agent, without an editor.
    "drive/": ["record/", "wrap/"],
    // Which processes stand between the editor and a wrapped agent.
    "layout/": ["record/", "wrap/"],
    // The entries.
    "shim.ts": ["layout/"],
    "wrap.ts": ["drive/", "layout/", "record/", "wrap/"],
    "index.ts": ["agent/", "durable/"],
  },
};
