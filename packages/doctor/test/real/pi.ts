import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import type { Agent, Place, Unit } from "./agent.ts";
import { lineDamage } from "./damage.ts";
import { startModel, type Tool } from "./model.ts";
import type { Program } from "./programs.ts";
import { run } from "./run.ts";
import type { Act } from "./stories.ts";

/** What is used of pi's own code. */
interface PiSessions {
  readonly SessionManager: {
    open(path: string): { buildSessionContext(): { readonly messages: readonly PiMessage[] } };
    listAll(): Promise<readonly { readonly id: string; readonly path: string }[]>;
  };
}
interface PiMessage {
  readonly role: string;
  readonly content?: string | readonly PiBlock[];
  readonly summary?: string;
  readonly toolCallId?: string;
}
interface PiBlock {
  readonly type: string;
  readonly text?: string;
  readonly thinking?: string;
  readonly id?: string;
  readonly name?: string;
  readonly arguments?: unknown;
}

export const pi: Agent = {
  name: "pi",
  format: "pi",
  stories: ["talk", "work", "killed", "killed-resumed", "compacted", "two"],
  async write(program, place, story) {
    await using model = await startModel("openai-chat", story, toolFor);
    const settings = {
      providers: {
        lab: {
          ...{ baseUrl: `${model.origin}/v1`, api: "openai-completions", apiKey: "none" },
          models: [{ id: "heron-1", reasoning: true, contextWindow: 128_000, maxTokens: 8_000 }],
        },
      },
    };
    const folder = join(place.home, ".pi/agent");
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, "models.json"), JSON.stringify(settings));
    // Otherwise it keeps the last 20,000 tokens, which is all of a story.
    writeFileSync(join(folder, "settings.json"), JSON.stringify({ compaction: { keepRecentTokens: 50 } }));
    const ids: string[] = [];
    for (const turns of story.sessions) {
      let file = "";
      for (const { prompt, killedAt, compact } of turns) {
        const before = filesOf(place);
        const at = file === "" ? [] : ["--session", file];
        await start([...at, "-p", prompt], killedAt);
        file ||= filesOf(place).find((each) => !before.includes(each)) ?? "";
        if (compact) await start(["--session", file, "--mode", "rpc"], undefined, `{"type":"compact"}\n`);
      }
      ids.push(idOf(file));
    }
    return ids;

    async function start(args: readonly string[], killedAt?: string, input?: string): Promise<void> {
      const all = [...program.command, "--provider", "lab", "--model", "heron-1", "--system-prompt", "You help."];
      const ended = await run([...all, ...args], place, {
        env: { PI_OFFLINE: "1" },
        killedAt,
        ...(input === undefined ? {} : { input, inputEndsAt: '"command":"compact"' }),
      });
      if (ended.status !== 0 && killedAt === undefined) throw new Error(`pi: ${ended.err}`);
    }
  },
  isRecorded: (path) => path.startsWith(".pi/agent/sessions/"),
  harmedStory: "work",
  damage: lineDamage({
    isConversation: (line) => line.startsWith('{"type":"message"'),
    isResult: (line) => line.includes('"role":"toolResult"'),
    isCall: (line) => line.includes('"type":"toolCall"'),
    input: /("arguments":)\{[^{}]*\}/,
  }),
  fileOf: (place, id) => filesOf(place).find((path) => idOf(path) === id),
  async judge(program, place, id) {
    const { SessionManager } = await load(program);
    const file = pi.fileOf(place, id);
    const listed = await asHome(place, () => SessionManager.listAll());
    const isListed = listed.some((session) => session.id === id);
    if (file === undefined) return { isListed, loads: false, says: "there is no such file", units: [] };
    try {
      const { messages } = SessionManager.open(file).buildSessionContext();
      return {
        isListed,
        loads: messages.length > 0,
        says: messages.length > 0 ? "" : "no message",
        units: unitsOf(messages),
      };
    } catch (error) {
      return { isListed, loads: false, says: String(error), units: [] };
    }
  },
};

function load({ file }: Program): Promise<PiSessions> {
  return import(pathToFileURL(join(dirname(file), "core/session-manager.js")).href) as Promise<PiSessions>;
}

/** It asks the environment where its folder is. */
async function asHome<T>({ home }: Place, read: () => Promise<T>): Promise<T> {
  const before = process.env["PI_CODING_AGENT_DIR"];
  process.env["PI_CODING_AGENT_DIR"] = join(home, ".pi/agent");
  try {
    return await read();
  } finally {
    if (before === undefined) delete process.env["PI_CODING_AGENT_DIR"];
    else process.env["PI_CODING_AGENT_DIR"] = before;
  }
}

function filesOf({ home }: Place): string[] {
  const folder = join(home, ".pi/agent/sessions");
  mkdirSync(folder, { recursive: true });
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" });
  return files.filter((path) => path.endsWith(".jsonl")).map((path) => join(folder, path));
}

const idOf = (path: string): string => /_([^_]+)\.jsonl$/.exec(path)?.[1] ?? "";

function unitsOf(messages: readonly PiMessage[]): Unit[] {
  return messages.flatMap(({ role, content = [], summary, toolCallId }): Unit[] => {
    const blocks = typeof content === "string" ? [{ type: "text", text: content } as PiBlock] : content;
    const text = blocks.map((block) => block.text ?? "").join("\n");
    // Since 0.87, its own prompt is the first message.
    if (role === "system") return [];
    if (summary !== undefined) return [{ kind: "user", text: summary }];
    if (role === "toolResult") return [{ kind: "result", text, call: toolCallId! }];
    return blocks.map((block): Unit => {
      if (block.type === "toolCall")
        return { kind: "call", text: JSON.stringify(block.arguments), call: block.id!, name: block.name! };
      if (block.type === "thinking") return { kind: "reasoning", text: block.thinking! };
      return { kind: role === "assistant" ? "assistant" : "user", text: block.text ?? JSON.stringify(block) };
    });
  });
}

function toolFor(act: Act): Tool {
  if ("run" in act) return { name: "bash", input: { command: act.run } };
  if ("read" in act) return { name: "read", input: { path: act.read } };
  if ("write" in act) return { name: "write", input: { path: act.write, content: act.text } };
  throw new Error("pi has no sub-agents");
}
