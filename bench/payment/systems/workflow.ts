import { spawn } from "node:child_process";
import { once } from "node:events";
import * as fs from "node:fs";
import { join } from "node:path";
import { freePort, startServer } from "../../../packages/postgres/test/server/server.ts";
import { startAgent } from "../agent-process.ts";
import type { Place, Running, System } from "../system.ts";

const VARIANTS = [
  { key: "plain", words: "no key" },
  { key: "key", words: "`getStepMetadata().stepId` as the key" },
];
const DRIVEN =
  "a loop in a workflow; a request to the model and a tool call are a step each; built and served as its guide shows";

export const workflow: System = {
  key: "workflow",
  name: "Workflow SDK 5, local World",
  packages: {
    workflow: "5.0.0-beta.55",
    "@workflow/world-local": "5.0.0-beta.46",
    "@workflow/serde": "5.0.0-beta.2",
    "@ai-sdk/workflow": "2.0.43",
    ai: "7.0.112",
    zod: "4.5.4",
  },
  // With the default, 860 s, the run stands still for up to that long after a kill.
  driven: `${DRIVEN}; WORKFLOW_INLINE_OWNERSHIP_LEASE_SECONDS=10`,
  variants: [
    ...VARIANTS,
    { key: "agent", words: "`WorkflowAgent` of `@ai-sdk/workflow`, no key" },
    { key: "agent-key", words: "`WorkflowAgent`, `getStepMetadata().stepId` as the key" },
  ],
  begin: (place) =>
    begin(place, {
      WORKFLOW_TARGET_WORLD: "local",
      WORKFLOW_LOCAL_DATA_DIR: join(place.folder, "workflow-data"),
      WORKFLOW_INLINE_OWNERSHIP_LEASE_SECONDS: "10",
    }),
};

export const workflowPostgres: System = {
  key: "workflow-postgres",
  name: "Workflow SDK 4, PostgreSQL World",
  // Version 5 of this World cannot be installed: it asks for versions of `@workflow/errors` that npm does not have.
  packages: { workflow: "4.8.9", "@workflow/world-postgres": "4.3.7" },
  driven: `${DRIVEN}; PostgreSQL 18`,
  variants: VARIANTS,
  begin: async (place) => {
    const server = await startServer();
    const env = { WORKFLOW_TARGET_WORLD: "@workflow/world-postgres", WORKFLOW_POSTGRES_URL: server.url };
    await run(join(place.folder, "node_modules/@workflow/world-postgres/bin/setup.js"), [], place.folder, env);
    const running = await begin(place, env);
    return {
      ...running,
      stop: async () => {
        await running.stop();
        await server.stop();
      },
    };
  },
};

/** Builds the workflow in this folder. */
async function begin({ folder, variant, url }: Place, world: Record<string, string>): Promise<Running> {
  const sources = join(folder, "workflows");
  fs.mkdirSync(sources);
  fs.writeFileSync(join(folder, "package.json"), "{}");
  const program = variant.startsWith("agent") ? "workflow-agent.mjs" : "workflow-payment.mjs";
  fs.copyFileSync(join(folder, program), join(sources, "payment.js"));
  for (const file of ["world.mjs", "ai-sdk-model.mjs"]) fs.copyFileSync(join(folder, file), join(sources, file));
  const server = fs.readFileSync(join(folder, "workflow-server.mjs"));
  // The builder reads every program that it finds.
  for (const file of fs.readdirSync(folder)) if (file.endsWith(".mjs")) fs.rmSync(join(folder, file));
  await run(join(folder, "node_modules/workflow/bin/run.js"), ["build"], folder, world);
  fs.writeFileSync(join(folder, "server.mjs"), server);
  const port = String(await freePort());
  return {
    start: (again) => {
      const env = { ...world, PAYMENT_URL: url, PORT: port };
      return startAgent(join(folder, "server.mjs"), [variant, again ? "again" : "first"], env, folder);
    },
    stop: async () => {},
  };
}

async function run(file: string, args: readonly string[], cwd: string, env: Record<string, string>): Promise<void> {
  const show = process.env["PAYMENT_SHOW"] ? "inherit" : "ignore";
  const child = spawn(process.execPath, [file, ...args], {
    cwd,
    env: { ...process.env, ...env },
    stdio: ["ignore", show, show],
  });
  const [status] = await once(child, "exit");
  if (status !== 0) throw new Error(`${file} ${args.join(" ")} failed`);
}
