import { openStore, type Store } from "holdfast";

export interface Spoken {
  readonly prompt: string;
  readonly answer?: string;
  readonly cwd?: string;
  readonly app?: string;
  readonly title?: string;
  /** The turn did not complete. */
  readonly cut?: true;
  readonly queued?: readonly string[];
  /** The conversation is replaced by a summary, which begins a new segment. */
  readonly compacted?: true;
}

/** A session with one turn: a prompt, a call of a shell, its result, an answer. */
export async function speak(store: Store, spoken: Spoken): Promise<string> {
  const { prompt, answer = "done", cwd, app, title, cut, queued = [], compacted } = spoken;
  await using session = await store.create({
    dialect: "ai-sdk",
    ...(cwd === undefined ? {} : { cwd }),
    ...(app === undefined ? {} : { app }),
    ...(title === undefined ? {} : { title }),
  });
  const turn = await session.startTurn({ role: "user", content: prompt });
  const call = { type: "tool-call" as const, toolCallId: "c1", toolName: "shell", input: { command: "ls -la" } };
  await turn.append({ role: "assistant", content: [{ type: "reasoning", text: "let me look" }, call] });
  await turn.tool("c1", () => Array.from({ length: 30 }, (_, line) => `line ${line}`).join("\n"));
  if (cut) await turn.abort({ by: "user" });
  else {
    await turn.append({ role: "assistant", content: answer });
    await turn.end();
  }
  if (compacted) await session.replace([{ role: "user", content: "a summary" }], { reason: "compaction" });
  for (const text of queued) await session.enqueue({ role: "user", content: text });
  return session.id;
}

/** The same in a store of its own, closed when it resolves. */
export async function speakIn(url: string, ...all: readonly Spoken[]): Promise<string[]> {
  await using store = await openStore(url, { durability: "process" });
  const ids: string[] = [];
  for (const spoken of all) ids.push(await speak(store, spoken));
  return ids;
}
