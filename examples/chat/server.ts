// A chat server with Hono. Build the page, start it, and open it in a browser:
//   npx vite build examples/chat && npx -c 'node --conditions=holdfast-source examples/chat/server.ts'
// Reload the page in mid-sentence, open it twice, or kill the server with `kill -9` and start it again.
import { join } from "node:path";
import { durableChat } from "@holdfast/adapters/ai-sdk";
import { serve } from "@hono/node-server";
import { serveStatic } from "@hono/node-server/serve-static";
import { guard, openStore } from "holdfast";
import { Hono } from "hono";
import { model, tools } from "./agent.ts";

const { CHAT_STORE = "./agent-data", PORT = "3000" } = process.env;
// The adapter records every tool start, so a call without one is known never to have run.
const store = await openStore(CHAT_STORE, { app: "chat", recordsToolStarts: true });
guard(store);
const chat = durableChat(store, { model, tools });

const app = new Hono();
app.all("/api/chat/*", ({ req }) => chat.handle(req.raw));
app.use("/*", serveStatic({ root: join(import.meta.dirname, "dist") }));
serve({ fetch: app.fetch, hostname: "127.0.0.1", port: Number(PORT) }, ({ port }) =>
  console.log(`http://127.0.0.1:${port}`),
);
