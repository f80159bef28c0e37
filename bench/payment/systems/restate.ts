import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { freePort } from "../../../packages/postgres/test/server/server.ts";
import { startAgent } from "../agent-process.ts";
import type { System } from "../system.ts";

export const restate: System = {
  key: "restate",
  name: "Restate",
  packages: {
    "@restatedev/restate-server": "1.7.12",
    "@restatedev/restate-sdk": "1.17.2",
    "@restatedev/vercel-ai-middleware": "0.4.0",
    "@ai-sdk/mcp": "2.0.99",
    "@ai-sdk/provider": "4.0.38",
    ai: "7.0.169",
    zod: "4.6.7",
  },
  driven:
    "`generateText` in a handler, `durableCalls`, the tool's work in `ctx.run`; its server, which survives, retries",
  variants: [
    { key: "plain", words: "no key" },
    { key: "key", words: "`ctx.rand.uuidv4()` as the key" },
  ],
  begin: async ({ folder, variant, url }) => {
    const [ingress, admin, node, agent] = [await freePort(), await freePort(), await freePort(), await freePort()];
    const binary = join(
      folder,
      "node_modules/@restatedev",
      `restate-server-${process.platform}-${process.arch}`,
      "bin/restate-server",
    );
    const server = spawn(binary, ["--node-name", "payment", "--bind-ip", "127.0.0.1"], {
      cwd: folder,
      stdio: process.env["PAYMENT_SHOW"] ? "inherit" : "ignore",
      env: {
        ...process.env,
        ...{ RESTATE_BASE_DIR: join(folder, "restate-data"), RESTATE_LISTEN_MODE: "tcp", DO_NOT_TRACK: "1" },
        RESTATE_DISABLE_TELEMETRY: "true",
        RESTATE_INGRESS__BIND_ADDRESS: `127.0.0.1:${ingress}`,
        RESTATE_ADMIN__BIND_ADDRESS: `127.0.0.1:${admin}`,
        RESTATE_BIND_ADDRESS: `127.0.0.1:${node}`,
        RESTATE_ADVERTISED_ADDRESS: `http://127.0.0.1:${node}/`,
      },
    });
    const begin = async (): Promise<void> => {
      const uri = `http://127.0.0.1:${agent}`;
      await post(`http://127.0.0.1:${admin}/deployments`, { uri, use_http_11: false });
      await post(`http://127.0.0.1:${ingress}/agent/run/send`, variant);
    };
    return {
      start: (again) => {
        const env = { PAYMENT_URL: url, AGENT_PORT: String(agent) };
        const child = startAgent(join(folder, "restate.mjs"), [folder, variant], env, folder);
        if (!again) {
          begin().catch((error: unknown) => {
            console.error(error);
            child.kill("SIGKILL");
          });
        }
        return child;
      },
      stop: async () => {
        if (server.exitCode !== null) return;
        server.kill("SIGKILL");
        await once(server, "exit");
      },
    };
  },
};

/** Repeats the request until the server is up. */
async function post(url: string, body: unknown): Promise<void> {
  for (let i = 0; i < 300; i++) {
    const headers = { "content-type": "application/json" };
    const answer = await fetch(url, { method: "POST", headers, body: JSON.stringify(body) }).catch(() => null);
    if (answer?.ok) return;
    await sleep(200);
  }
  throw new Error(`no answer from ${url}`);
}
