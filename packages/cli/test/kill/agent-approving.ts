import { loadConfig } from "../../src/config.ts";
import type { PermissionAsk } from "../../src/host/host.ts";
import { openLocalHost } from "../../src/host/local/local-host.ts";

/** An agent whose person is asked, and answers at once: no to what has "refuse" in it, else yes. */
const [id = "-", prompt = ""] = process.argv.slice(2);
const host = await openLocalHost({ config: loadConfig({}), asks: "person" });
const chat = id === "-" ? await host.create({ cwd: process.cwd() }) : await host.open(id);
process.stdout.write(`${JSON.stringify({ type: "session", session: chat.id })}\n`);
const answer = ({ call, summary }: PermissionAsk): Promise<void> =>
  chat.answer(call, summary.includes("refuse") ? "deny" : "allow");
chat.subscribe((event) => {
  process.stdout.write(`${JSON.stringify(event)}\n`);
  if (event.type === "permission.asked") void answer(event.ask);
});
if (id === "-") await chat.prompt(prompt);
else if (chat.state.asks.length > 0) for (const ask of chat.state.asks) await answer(ask);
else await chat.finish();
while (chat.state.status === "running" || chat.state.status === "waiting") {
  await chat.settled();
  await new Promise(setImmediate);
}
await host.close();
