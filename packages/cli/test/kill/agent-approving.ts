import { loadConfig } from "../../src/config.ts";
import { openLocalHost } from "../../src/host/local.ts";

/** An agent whose person is asked, and answers at once: no to what has "refuse" in it, else yes. */
const [id = "-", prompt = ""] = process.argv.slice(2);
const host = await openLocalHost({ config: loadConfig({}), asks: "person" });
const chat = id === "-" ? await host.create({ cwd: process.cwd() }) : await host.open(id);
process.stdout.write(`${JSON.stringify({ type: "session", session: chat.id })}\n`);
chat.subscribe((event) => {
  process.stdout.write(`${JSON.stringify(event)}\n`);
  if (event.type !== "permission.asked") return;
  void chat.answer(event.ask.call, event.ask.summary.includes("refuse") ? "deny" : "allow");
});
if (id === "-") await chat.prompt(prompt);
else await chat.finish();
while (chat.state.status === "running" || chat.state.status === "waiting") {
  await chat.settled();
  await new Promise(setImmediate);
}
await host.close();
