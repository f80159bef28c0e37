import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { type Entry, guard, openStore, type Turn } from "holdfast";
import { tellLine } from "../kill/pipe.ts";
import type { DemoEvent, EntryWord, Kept } from "./events.ts";
import { ask, blocksOf, type Message, PROMPT } from "./model.ts";

export interface AgentJob {
  /** As `openStore` takes it. */
  readonly store: string;
  /** The world outside: one line for each thing that a tool did to it. */
  readonly world: string;
}

/** So many tools run at a time. */
const PARALLEL = 2;

const tell = (event: DemoEvent): void => tellLine(event);
const kept = (what: Kept, id: string): void => tell({ e: "kept", what, id });

/** The child: an agent of a few lines. It does not know that it will be killed. */
async function main(): Promise<void> {
  const job = JSON.parse(process.argv[2] ?? "null") as AgentJob;
  const tools = toolsOf(job.world);
  const start = performance.now();
  const store = await openStore(job.store, { app: "demo" });
  const session =
    (await store.resumeLatest<Message>({ app: "demo" }, { intents: true })) ??
    (await store.create<Message>({ dialect: "anthropic", title: "release", intents: true }));
  guard(session);
  const found = session.interruption;
  const there = session.entries.map(wordFor);
  tell({ e: "opened", session: session.id, ms: performance.now() - start, found, there });

  const turn = found ? await session.resumeTurn() : await session.startTurn({ role: "user", content: PROMPT });
  kept("message", turn.prompt.id);
  for (;;) {
    tell({ e: "request", messages: session.messages });
    const draft = turn.draft();
    const answer = await ask(session.messages, (text) => stream(text, draft), turn.signal);
    const { id } = await draft.commit(answer);
    kept("message", id);
    const [text] = blocksOf(answer);
    tell({ e: "answer", text: text?.text ?? "", calls: turn.open.map(({ name }) => name) });
    if (turn.open.length === 0) break;
    const queue = [...turn.open];
    const work = async (): Promise<void> => {
      for (let call = queue.shift(); call; call = queue.shift()) await run(turn, call, tools[call.name]!);
    };
    await Promise.all(Array.from({ length: PARALLEL }, work));
  }
  await turn.end();
  await store.close();
  tell({ e: "done" });
}

function wordFor({ message, synthetic }: Entry<Message>): EntryWord {
  if (synthetic !== undefined) return "note";
  if (message.role === "assistant") return "answer";
  return blocksOf(message).length === 0 ? "prompt" : "result";
}

function stream(text: string, draft: { push(delta: { text: string }): void }): void {
  tell({ e: "word", text });
  draft.push({ text });
}

async function run(turn: Turn<Message>, call: { id: string; name: string }, tool: Tool): Promise<void> {
  const { value } = await turn.tool(call.id, (signal) => {
    kept("tool.started", call.id);
    tell({ e: "tool", name: call.name, came: "started" });
    return tool(signal);
  });
  kept("tool.ended", call.id);
  tell({ e: "tool", name: call.name, came: "ended", value: value ?? "failed" });
}

type Tool = (signal: AbortSignal) => Promise<string>;

function toolsOf(world: string): Record<string, Tool> {
  const does = (what: string): void => appendFileSync(world, `${what}\n`);
  const has = (what: string): boolean => existsSync(world) && readFileSync(world, "utf8").includes(what);
  return {
    run_tests: async (signal) => {
      await sleep(150, undefined, { signal });
      does("run_tests");
      return "412 tests pass";
    },
    publish: async (signal) => {
      // It takes effect early, and comes back late: the worst moment to die in.
      does("publish");
      await sleep(60_000, undefined, { signal });
      return "published";
    },
    update_docs: async (signal) => {
      // The first time it has no time to take effect.
      if (!has("look")) await sleep(60_000, undefined, { signal });
      does("update_docs");
      return "docs: 2.4";
    },
    notify_team: async () => {
      does("notify_team");
      return "12 people told";
    },
    look: async () => {
      const seen = `registry: ${has("publish") ? "2.4" : "2.3"}, docs: ${has("update_docs") ? "2.4" : "2.3"}`;
      does("look");
      return seen;
    },
  };
}

main().catch((error: unknown) => {
  tell({ e: "failed", message: error instanceof Error ? (error.stack ?? error.message) : String(error) });
  process.exit(1);
});
