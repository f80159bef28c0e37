// Holdfast, alone: `node holdfast.mjs <folder> <variant>`. The same program starts and recovers.
import { openStore } from "holdfast";
import { ask, askModel, charge, ended, PROMPT } from "./world.mjs";

const [folder, variant] = process.argv.slice(2);

/** Asks the service what became of the key that the call had. */
async function probe({ key }) {
  const found = await ask(key);
  return found ? { value: found } : "did-not-happen";
}

const options = { plain: {}, replay: { replay: "safe" }, probe: { probe } }[variant];
const store = await openStore(`file://${folder}/agent-data`, { recordsToolStarts: true });
const session =
  (await store.resumeLatest({}, { dialect: "openai-chat" })) ?? (await store.create({ dialect: "openai-chat" }));
const turn = session.interruption
  ? await session.resumeTurn({ calls: "rerun" })
  : await session.startTurn({ role: "user", content: PROMPT });
const run = ({ id, input }) => turn.tool(id, (_signal, { key }) => charge(input, key), options);
for (const call of turn.open) await run(call);
for (;;) {
  const { messages, draft } = turn.request();
  const { call, text } = await askModel(messages);
  if (!call) {
    await draft.commit({ role: "assistant", content: text }, { end: true });
    break;
  }
  const { id, name, input } = call;
  const named = { id, type: "function", function: { name, arguments: JSON.stringify(input) } };
  await draft.commit({ role: "assistant", content: null, tool_calls: [named] });
  await run(call);
}
await ended({ text: "done" });
await store.close();
