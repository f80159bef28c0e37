import { installRuntimes } from "../../../../scripts/runtimes.ts";

/** Before the tests of this layer: the runtimes come from npm, in exact versions. */
export const setup = installRuntimes;
