import { join } from "node:path";
import { startAgent } from "../agent-process.ts";
import type { System } from "../system.ts";

const AGENT = join(import.meta.dirname, "..", "agents", "holdfast.mjs");

export const holdfast: System = {
  key: "holdfast",
  name: "Holdfast",
  packages: {},
  driven:
    'a loop of one\'s own around `turn.tool`, which sends `call.key`; `resumeLatest` and `resumeTurn({ calls: "rerun" })` after the kill',
  variants: [
    { key: "plain", words: "no probe" },
    { key: "replay", words: '`replay: "safe"`, as the service accepts `call.key`' },
    { key: "probe", words: "a probe asks the service for `call.key`" },
  ],
  begin: async ({ folder, variant, url }) => ({
    start: () =>
      startAgent(AGENT, [folder, variant], { PAYMENT_URL: url, NODE_OPTIONS: "--conditions=holdfast-source" }, folder),
    stop: async () => {},
  }),
};
