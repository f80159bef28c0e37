import { openers } from "../../conformance/openers.ts";

/**
 * A process of its own that begins a turn in a session and then does nothing, until it is killed: `list-holder.ts
 * <store> <path> <id>`.
 */
const [kind, path, id] = process.argv.slice(2) as [keyof typeof openers, string, string];
const store = await openers[kind](path, {});
const { journal } = await store.open(id);
await journal.append([
  { kind: "turn.started", turn: 1, prompt: "p" },
  { kind: "message", id: "p", turn: 1, step: "p", message: { role: "user", content: "Hello from afar" } },
]);
process.send?.("ready");
// The channel to the parent keeps it alive.
process.on("message", () => {});
