import type { PackageRooms } from "./rooms.ts";

/** The rooms of the package for editors. */
export const ACP_ROOMS: PackageRooms = {
  sources: "packages/acp/src/",
  base: [],
  rooms: {
    // An agent behind `Host`, as an editor sees it.
    "agent/": [],
    // A proxy between an editor and an agent that nobody can change.
    "wrap/": [],
    // A decorator for the stream of an agent in the same process, on the same record of sessions.
    "durable/": ["wrap/"],
    // Which processes stand between the editor and a wrapped agent.
    "layout/": ["wrap/"],
    // The entries.
    "shim.ts": ["layout/"],
    "wrap.ts": ["layout/", "wrap/"],
    "index.ts": ["agent/", "durable/"],
  },
};
