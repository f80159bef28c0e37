// An agent that keeps an array of messages, and has no place for hooks: it hands the array over whenever it has
// changed. Start it, `kill -9` it while it speaks, and start it again: node --conditions=holdfast-source
// examples/array.ts
import { setTimeout as sleep } from "node:timers/promises";
import { openStore } from "holdfast";
import { ask, type Block, callsIn, type Message } from "./model.ts";

const store = await openStore("./agent-data", { app: "array" });
const session =
  (await store.resumeLatest<Message>({ cwd: ".", app: "array" })) ??
  (await store.create<Message>({ dialect: "anthropic", cwd: "." }));

// The array goes on where it was. What was cut off in it is closed: the provider accepts it as it stands.
const messages: Message[] = [...session.messages];
const found = session.interruption;
// A turn that has its answer is over: go on with a prompt, since the array ends with the model's words.
if (found && !found.answered) {
  console.log(`turn ${found.turn} was cut off (${found.how.kind})`);
  if (found.draft) console.log(`  it was saying: ${found.draft.text}`);
  // Without recorded starts nobody knows whether a tool ran: the calls are "unrecorded", and the model is told to
  // check.
  for (const call of found.calls) console.log(`  ${call.name}: ${call.state}`);
} else {
  messages.push({ role: "user", content: "Tell everybody about the release." });
  // Opens a turn at a prompt. Durable when it resolves.
  await session.sync(messages);
}

for (;;) {
  const answer = await stream(messages);
  // An answer without calls ends the turn, in the same write. By reference this costs what is new, however long the
  // array is.
  await session.sync(messages);
  const calls = callsIn(answer);
  if (calls.length === 0) break;
  const results = calls.map(({ id, name }) => ({ type: "tool_result", tool_use_id: id, content: `${name}: done.` }));
  messages.push({ role: "user", content: results });
  await session.sync(messages);
}
await store.close();
console.log("done");

/** As many agents do it: the message is in the array from its first word on, and grows there. */
async function stream(messages: Message[]): Promise<Message> {
  const request = [...messages];
  const text: Block = { type: "text", text: "" };
  const place = messages.push({ role: "assistant", content: [text] }) - 1;
  // `open`: the last message still grows. What is there of it is kept as a draft, which never is a message of its own.
  const timer = setInterval(() => void session.sync(messages, { open: true }).catch(console.error), 100);
  try {
    const answer = await ask(request, async (word) => {
      text.text += word;
      if (word !== "mail " || found) return;
      console.log(`model: ${text.text}… (kill -9 ${process.pid} now, and start me again)`);
      await sleep(10_000);
    });
    messages[place] = answer;
    console.log(`model: ${text.text}`);
    return answer;
  } finally {
    clearInterval(timer);
  }
}
