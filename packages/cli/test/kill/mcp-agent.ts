import { join } from "node:path";
import type { ModelMessage } from "ai";
import { openStore } from "holdfast";
import type { Services } from "../../src/agent/services.ts";
import { LocalChat } from "../../src/host/local/local-chat.ts";
import { McpServers } from "../../src/mcp/servers.ts";
import type { Servers } from "../../src/mcp-settings/server-settings.ts";
import { APP } from "../../src/store/app.ts";
import { ProjectRules } from "../../src/trust/project-rules.ts";
import { Trust } from "../../src/trust/trust.ts";
import { asResolved, type call, config, scripted } from "../unit/host/host-stage.ts";

/** An agent with MCP servers and a model that answers by a script, in a process that can be killed. */
export interface Job {
  readonly store: string;
  readonly work: string;
  readonly servers: Servers;
  /** Finish the turn of this session; otherwise, begin one. */
  readonly resume?: string;
  readonly steps: readonly (readonly ReturnType<typeof call>[])[];
}

const job = JSON.parse(process.argv[2]!) as Job;
const store = await openStore(job.store, { app: APP, recordsToolStarts: true });
const model = asResolved(scripted(...job.steps));
const env = { PATH: process.env["PATH"], HOME: job.work };
const servers = new McpServers(job.servers, { version: "0", env, variables: env });
const services: Services = {
  store,
  config: { ...config, allow: ["mcp__test"] },
  asks: "nobody",
  model: async () => model,
  outputs: () => join(job.store, "outputs"),
  ending: new AbortController().signal,
  trust: new Trust(store.url),
  servers,
  rules: new ProjectRules(null),
};
const session =
  job.resume === undefined
    ? await store.create<ModelMessage>({ dialect: "ai-sdk", app: APP, cwd: job.work })
    : await store.resume<ModelMessage>(job.resume, { app: APP });
services.trust.of(session.id).workIn(job.work);
const chat = new LocalChat(session, model, services, () => {});
await chat.restore();
process.stdout.write(`${JSON.stringify({ session: session.id })}\n`);
if (job.resume === undefined) await chat.prompt("go");
else await chat.finish();
await chat.settled();
process.stdout.write(`${JSON.stringify({ items: chat.state.items })}\n`);
await chat.close();
await servers.close();
await store.close();
