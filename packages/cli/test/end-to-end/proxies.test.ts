import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { type IncomingMessage, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { json, text } from "node:stream/consumers";
import { readEvents } from "@holdfast/server/internal";
import { expect, test } from "vitest";
import { freePort } from "../../../postgres/test/server/server.ts";
import { temporaryHome } from "../command.ts";
import { serve } from "../serve.ts";

/** The configurations of docs/guides/server.md, in the real proxies. */

const guide = readFileSync(join(import.meta.dirname, "../../../../docs/guides/server.md"), "utf8");
const NAME = "holdfast.example.org";

function block(proxy: string): string {
  const [, found] = new RegExp(`<!-- ${proxy}: [^>]*-->\\n\`\`\`\\w*\\n([\\s\\S]*?)\`\`\``).exec(guide) ?? [];
  return found!;
}

interface Proxy {
  readonly program: string;
  /** The arguments that show its version. */
  readonly version: string;
  /** Writes the configuration into the folder, and returns the arguments. */
  readonly configure: (folder: string, port: number, upstream: string) => string[];
}

const proxies: Readonly<Record<string, Proxy>> = {
  nginx: {
    program: process.env["HOLDFAST_NGINX"] ?? "nginx",
    version: "-v",
    configure: (folder, port, upstream) => {
      const kinds = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
      const file = join(folder, "nginx.conf");
      writeFileSync(
        file,
        `daemon off; master_process off; pid ${folder}/pid; error_log stderr;
events {}
http {
  access_log off;
  ${kinds.map((kind) => `${kind}_temp_path ${folder}/${kind};`).join(" ")}
  server {
    listen 127.0.0.1:${port};
    server_name ${NAME};
    ${block("nginx").replace("127.0.0.1:4040", upstream)}
  }
}`,
      );
      return ["-p", folder, "-c", file, "-e", "stderr"];
    },
  },
  caddy: {
    program: process.env["HOLDFAST_CADDY"] ?? "caddy",
    version: "version",
    configure: (folder, port, upstream) => {
      const file = join(folder, "Caddyfile");
      const own = block("caddy").replace("127.0.0.1:4040", upstream).replace(NAME, `http://${NAME}:${port}`);
      writeFileSync(file, `{\n  admin off\n}\n${own}`);
      return ["run", "--config", file, "--adapter", "caddyfile"];
    },
  },
};

interface SeenRequest {
  readonly method?: string;
  readonly headers?: Record<string, string>;
  readonly body?: string;
}

function ask(
  port: number,
  path: string,
  { method = "GET", headers = {}, body }: SeenRequest = {},
): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const sent = request({ host: "127.0.0.1", port, path, method, headers: { host: NAME, ...headers } }, resolve);
    sent.on("error", reject);
    sent.end(body);
  });
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill("SIGKILL");
  await once(child, "exit");
}

test.for(Object.keys(proxies))(
  "behind %s: names, origins, large bodies, and events as they happen",
  async (name, { skip }) => {
    const { program, version, configure } = proxies[name]!;
    if (spawnSync(program, [version]).status !== 0)
      skip(`not run: ${name} is not installed (apt-get install ${name}, or HOLDFAST_${name.toUpperCase()})`);
    using home = temporaryHome();
    const folder = mkdtempSync(join(tmpdir(), "holdfast-proxy-"));
    await using server = await serve(home, ["--allow-host", NAME], { HOLDFAST_OFFLINE_DELAY_MS: "5" });
    const port = await freePort();
    const proxy = spawn(program, configure(folder, port, new URL(server.url).host), {
      stdio: ["ignore", "ignore", "pipe"],
      env: { ...process.env, HOME: folder, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder },
    });
    let said = "";
    proxy.stderr.setEncoding("utf8").on("data", (piece: string) => {
      said += piece;
    });
    try {
      while (!(await ask(port, "/openapi.json").catch(() => null))) {
        if (proxy.exitCode !== null) throw new Error(said);
      }
      const authorization = `Bearer ${server.token}`;
      const own = { authorization, "content-type": "application/json" };
      expect((await ask(port, "/server", { headers: { authorization } })).statusCode).toBe(200);
      expect((await ask(port, "/server")).statusCode).toBe(401);
      // The page, over HTTPS at the proxy.
      const origin = `https://${NAME}`;
      const signedIn = await ask(port, "/auth/cookie", {
        method: "POST",
        headers: { "content-type": "application/json", origin },
        body: JSON.stringify({ token: server.token }),
      });
      const [cookie] = signedIn.headers["set-cookie"]!;
      expect(cookie).toMatch(/; Secure$/);
      const create = (headers: Record<string, string>) =>
        ask(port, "/sessions", {
          method: "POST",
          headers: { "content-type": "application/json", cookie: cookie!.split(";")[0]!, ...headers },
          body: JSON.stringify({ cwd: home.work }),
        });
      const made = await create({ origin });
      expect(made.statusCode).toBe(201);
      const { id } = (await json(made)) as { id: string };
      expect((await create({ origin: "https://evil.example" })).statusCode).toBe(403);
      expect((await create({})).statusCode).toBe(403);

      const events = await ask(port, `/sessions/${id}/events`, { headers: { authorization } });
      const body = JSON.stringify({ text: "tell me a story of 4000 lines" });
      expect((await ask(port, `/sessions/${id}/turns`, { method: "POST", headers: own, body })).statusCode).toBe(202);
      for await (const event of readEvents(events, "", () => {})) if (event.name === "text") break;
      // The turn takes long: what has come was not kept back until its end.
      expect((await server.client.call("getSession", { params: { id } })).status).toBe("running");
      await server.client.call("stopTurn", { params: { id } });
      events.destroy();

      const recording = await server.client.call("createRecording", { body: { dialect: "anthropic" } });
      const large = { role: "user", content: "x".repeat(20 * 1024 * 1024) };
      const record = { recorder: recording.recorder, key: "k", record: { type: "turn.start", prompt: large } };
      const recorded = await ask(port, `/sessions/${recording.session}/records`, {
        method: "POST",
        headers: own,
        body: JSON.stringify(record),
      });
      expect([recorded.statusCode, (await text(recorded)).slice(0, 200)]).toMatchObject([200, expect.any(String)]);
    } finally {
      await stop(proxy);
      rmSync(folder, { recursive: true, force: true });
    }
  },
);
