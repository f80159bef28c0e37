// Serves the bundles that `workflow build` made, as the SDK's guide for frameworks shows: `node workflow-server.mjs <variant> <again>`.
import * as fs from "node:fs";
import { createServer } from "node:http";
import { text } from "node:stream/consumers";
import { start } from "workflow/api";
import { getWorld } from "workflow/runtime";

const [variant, again] = process.argv.slice(2);
const built = new URL(".well-known/workflow/v1/", import.meta.url);
const routes = new Map();
for (const name of ["flow", "step"])
  for (const end of [".mjs", ".js"])
    if (fs.existsSync(new URL(name + end, built))) {
      const module = await import(new URL(name + end, built).href);
      routes.set(`/.well-known/workflow/v1/${name}`, module.POST ?? module.default.POST);
    }

const server = createServer(async (request, response) => {
  const url = new URL(request.url, "http://127.0.0.1");
  const serve = routes.get(url.pathname);
  if (!serve) return response.writeHead(404).end();
  const { method, headers } = request;
  const body = method === "GET" || method === "HEAD" ? null : await text(request);
  const answer = await serve(new Request(url, { method, headers, body }));
  response.writeHead(answer.status, Object.fromEntries(answer.headers)).end(Buffer.from(await answer.arrayBuffer()));
});
await new Promise((resolve) => server.listen(Number(process.env.PORT), resolve));

const world = await getWorld();
await world.start?.();
if (again !== "again") {
  const { workflows } = JSON.parse(fs.readFileSync(new URL("manifest.json", built), "utf8"));
  const { workflowId } = Object.values(workflows).flatMap((file) => (file.agent ? [file.agent] : []))[0];
  await start({ workflowId }, [variant]);
}
