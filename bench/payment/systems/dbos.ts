import { join } from "node:path";
import { startServer } from "../../../packages/postgres/test/server/server.ts";
import { startAgent } from "../agent-process.ts";
import type { System } from "../system.ts";

export const dbos: System = {
  key: "dbos",
  name: "DBOS",
  // The integration asks for version 4 of the SDK, so version 5 cannot be installed with it.
  packages: { "@dbos-inc/dbos-sdk": "4.27.6", "@dbos-inc/vercel-ai": "0.1.5", ai: "7.0.169", zod: "4.6.7" },
  driven:
    "`generateText` in a workflow, `durableCalls`, the tool's work in `DBOS.runStep`; PostgreSQL 18; `DBOS.launch` recovers",
  variants: [
    { key: "plain", words: "no key" },
    { key: "key", words: "`DBOS.workflowID` and `DBOS.stepID` as the key" },
  ],
  begin: async ({ folder, variant, url }) => {
    const server = await startServer();
    const env = { PAYMENT_URL: url, DATABASE_URL: server.url };
    return {
      start: () => startAgent(join(folder, "dbos.mjs"), [folder, variant], env, folder),
      stop: () => server.stop(),
    };
  },
};
