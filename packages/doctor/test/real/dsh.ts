import { writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import type { Agent, Place, Unit, Verdict } from "./agent.ts";
import { lineDamage } from "./damage.ts";
import { filesBelow } from "./files.ts";
import { startModel, type Tool } from "./model.ts";
import { run } from "./run.ts";
import type { Act } from "./stories.ts";

/** Asks the program's own storage, in a process of its own: it may repair what it loads. */
const READ = `
  const [packages, root, compression, id] = process.argv.slice(1);
  const { Context } = await import(packages + "/cordis/lib/index.js");
  const { default: Persistence } = await import(packages + "/dsh-session-persistence-jsonl/lib/index.js");
  const session = await import(packages + "/dsh-session/lib/index.js");
  const context = new Context();
  await context.plugin(session.SessionStore);
  await context.plugin(Persistence, { root, compression });
  const stored = context.get("sessionPersistence");
  const failed = (error) => ({ error: String(error) });
  const listed = await stored.list().catch(failed);
  const isListed = Array.isArray(listed) && listed.some((meta) => meta.id === id);
  const loaded = await stored.load(id).catch(failed);
  const nodes = loaded.events ? session.foldSurface(loaded.events).nodes : [];
  const messages = nodes.map((seq) => session.deriveEventMessage(loaded.events[seq]));
  console.log("read " + JSON.stringify({ isListed, messages, error: loaded.error }));
  process.exit(0);
`;

interface Loaded {
  readonly isListed: boolean;
  readonly error?: string;
  readonly messages: readonly {
    readonly role: string;
    readonly source?: { readonly kind: string };
    readonly content: readonly {
      readonly type: string;
      readonly text?: string;
      readonly id?: string;
      readonly name?: string;
      readonly arguments?: string;
      readonly toolCallId?: string;
      readonly content?: readonly { readonly text?: string }[];
    }[];
  }[];
}

/** DeepSeek Harness without a screen has one turn for each session. */
export const dsh: Agent = {
  name: "dsh",
  format: "dsh",
  stories: ["steps", "plain", "killed"],
  async write({ file }, place, story) {
    await using model = await startModel("openai-chat", story, (act) => toolFor(act, place));
    const plain = join(place.home, "plain.yml");
    const config = { root: rootOf(place), compression: "none" };
    writeFileSync(plain, JSON.stringify([{ id: "session-persistence-jsonl", config }]));
    const patch = story.name === "plain" ? ["--patch", plain] : [];
    for (const { prompt, killedAt } of story.sessions.flat()) {
      const start = ["--import", join(import.meta.dirname, "dsh-start.ts"), file, "--profile", "headless"];
      const { status, err } = await run([process.execPath, ...start, ...patch, prompt], place, {
        killedAt,
        env: { DEEPSEEK_API_KEY: "none", DEEPSEEK_BASE_URL: `${model.origin}/v1` },
      });
      if (status !== 0 && killedAt === undefined) throw new Error(`dsh: ${err}`);
    }
    return logsOf(place).map((path) => basename(dirname(path)));
  },
  isRecorded: (path) => path.startsWith(".dsh/sessions/"),
  harmedStory: "plain",
  damage: lineDamage({
    isConversation: (line) => line.includes('"surfaceOp"'),
    isResult: (line) => line.includes('"type":"tool/result"'),
    isCall: (line) => line.includes('"type":"assistant/message"') && line.includes('"type":"tool-call"'),
    input: /("arguments":)"(?:[^"\\]|\\.)*"/,
  }),
  fileOf: (place, id) => logsOf(place).find((path) => basename(dirname(path)) === id),
  async judge({ file }, place, id): Promise<Verdict> {
    const packages = join(dirname(file), "../..");
    const compression = logsOf(place).some((path) => path.endsWith(".jsonl")) ? "none" : "zstd";
    const command = [process.execPath, "--input-type=module", "-e", READ, packages, rootOf(place), compression, id];
    const { out, err } = await run(command, place, { env: {} });
    const said = out.split("\n").find((line) => line.startsWith("read "));
    if (said === undefined) return { isListed: null, loads: false, says: err.trim(), units: [] };
    const { isListed, messages, error = "" } = JSON.parse(said.slice(5)) as Loaded;
    return { isListed, loads: error === "", says: error, units: unitsOf(messages) };
  },
};

const rootOf = ({ home }: Place): string => join(home, ".dsh/sessions");
const logsOf = (place: Place): string[] =>
  filesBelow(rootOf(place)).filter((path) => /\/session\.jsonl(?:\.zstd)?$/.test(path));

function unitsOf(messages: Loaded["messages"]): Unit[] {
  return messages
    .filter(({ source }) => source?.kind !== "plugin")
    .flatMap(({ role, content }) =>
      content.map((block): Unit => {
        const { type, text = "" } = block;
        if (type === "tool-call")
          return { kind: "call", text: String(block.arguments), call: block.id!, name: block.name! };
        if (type === "tool-result") {
          const result = (block.content ?? []).map((each) => each.text ?? JSON.stringify(each)).join("\n");
          return { kind: "result", text: result, call: block.toolCallId! };
        }
        if (type === "reasoning") return { kind: "reasoning", text };
        return { kind: role === "assistant" ? "assistant" : "user", text };
      }),
    );
}

function toolFor(act: Act, { work }: Place): Tool {
  if ("run" in act) return { name: "bash", input: { command: act.run, description: "Runs it" } };
  if ("read" in act) return { name: "read", input: { file_path: join(work, act.read) } };
  if ("write" in act) return { name: "write", input: { file_path: join(work, act.write), content: act.text } };
  throw new Error("no sub-agents here");
}
