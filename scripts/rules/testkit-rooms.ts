import type { PackageRooms } from "./rooms.ts";

/** The rooms of the laboratory, from the bottom to the top, with what each may import. */
export const TESTKIT_ROOMS: PackageRooms = {
  sources: "packages/testkit/src/",
  base: [],
  rooms: {
    // What a store must do: one case after another, and stores that are broken on purpose, to test the cases.
    "conformance/": [],
    "conformance/cases/": ["conformance/"],
    "conformance/cases.ts": ["conformance/", "conformance/cases/"],
    "conformance/conformance.ts": ["conformance/", "conformance/cases.ts"],
    "conformance/broken/": ["conformance/"],
    "conformance/broken.ts": ["conformance/broken/"],
    "conformance/proof.ts": [
      ...["conformance/", "conformance/broken.ts", "conformance/cases.ts", "conformance/conformance.ts"],
    ],
    "conformance/index.ts": [
      ...["conformance/", "conformance/broken.ts", "conformance/cases.ts", "conformance/conformance.ts"],
      "conformance/proof.ts",
    ],
    // What each provider accepts.
    "providers/": [],
    "providers/examples/": ["providers/"],
    "providers/index.ts": ["providers/", "providers/examples/"],
    // A disk in memory, with a crash or a fault at every step.
    "simulation/": [],
    // A process that is killed while it writes; then one that talks to a model.
    "kill/": ["simulation/"],
    "conversations/": ["kill/", "providers/", "simulation/"],
    // Real bad storage: small, full and failing disks, power cuts.
    "machine/": ["kill/", "simulation/"],
    "torture/": ["conversations/", "kill/", "machine/"],
    // The check of a dialect.
    "dialects/": ["conformance/conformance.ts", "simulation/"],
    // The public entries: what other projects use.
    "index.ts": ["conformance/", "conformance/conformance.ts", "dialects/", "providers/"],
    "kill.ts": ["kill/"],
    "simulation.ts": ["simulation/"],
    "conversations.ts": ["conversations/"],
  },
};
