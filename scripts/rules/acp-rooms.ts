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
    "index.ts": ["agent/", "wrap/"],
  },
};
