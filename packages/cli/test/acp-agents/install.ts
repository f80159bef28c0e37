import { installAcpPrograms } from "../../../../scripts/acp-agents.ts";

/** Before the tests of this layer. What cannot be installed fails all of them. */
export const setup = (): Promise<void> => installAcpPrograms();
