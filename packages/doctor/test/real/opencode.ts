import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as passed } from "node:timers/promises";
import type { Agent, Place, Unit } from "./agent.ts";
import { databaseDamage } from "./damage.ts";
import { type Model, startModel, type Tool } from "./model.ts";
import type { Program } from "./programs.ts";
import { type Ended, run } from "./run.ts";
import { type Act, EMPTY, type Turn } from "./stories.ts";

/** Below its home: what it printed. */
const OUT = "printed";

/** What `opencode export` prints. */
interface Exported {
  readonly info: { readonly id: string };
  readonly messages: readonly {
    readonly info: { readonly role: string };
    readonly parts: readonly Part[];
  }[];
}
interface Part {
  readonly type: string;
  readonly text?: string;
  readonly tool?: string;
  readonly callID?: string;
  readonly state?: { readonly input?: unknown; readonly output?: string; readonly error?: string };
}

export const opencode: Agent = {
  name: "opencode",
  format: "opencode",
  stories: ["talk", "work", "killed", "killed-resumed", "compacted", "two", "subagent"],
  async write(program, place, story) {
    await using model = await startModel("openai-chat", story, toolFor);
    const ids: string[] = [];
    for (const turns of story.sessions) {
      let before: Turn | undefined;
      for (const turn of turns) {
        const at = before === undefined ? [] : ["--session", ids.at(-1)!];
        await start(program, place, model, ["run", ...at, turn.prompt], turn);
        if (before === undefined) ids.push((await listed(program, place, model)).find((id) => !ids.includes(id))!);
        if (turn.compact) await compact(program, place, model, ids.at(-1)!);
        before = turn;
      }
    }
    return ids;
  },
  isRecorded: (path) => /^\.local\/share\/opencode\/(?:opencode[^/]*\.db$|storage\/)/.test(path),
  harmedStory: "work",
  damage: databaseDamage(),
  fileOf: ({ home }) => join(home, ".local/share/opencode/opencode.db"),
  async judge(program, place, id) {
    await using model = await startModel("openai-chat", EMPTY, toolFor);
    const isListed = (await listed(program, place, model)).includes(id);
    const { status, out, err } = await start(program, place, model, ["export", id]);
    const loads = status === 0 && out.includes("{");
    if (!loads) return { isListed, loads, says: `${out}${err}`.trim(), units: [] };
    return { isListed, loads, says: "", units: unitsOf(JSON.parse(out.slice(out.indexOf("{"))) as Exported) };
  },
};

/** Only its server compacts when it is told to. */
async function compact(program: Program, place: Place, model: Model, id: string): Promise<void> {
  const sign = "compacted";
  const served = start(program, place, model, ["serve", "--port", "0"], { killedAt: sign });
  const printed = join(place.home, OUT);
  const deadline = performance.now() + 60_000;
  let address: string | undefined;
  while (address === undefined && performance.now() < deadline) {
    await passed(200);
    address = /http:\/\/127\.0\.0\.1:\d+/.exec(existsSync(printed) ? readFileSync(printed, "utf8") : "")?.[0];
  }
  try {
    const answer = await fetch(`${address}/session/${id}/summarize?directory=${encodeURIComponent(place.work)}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ providerID: "lab", modelID: "heron-1" }),
    });
    if (!answer.ok) throw new Error(`opencode does not compact: ${await answer.text()}`);
  } finally {
    writeFileSync(join(place.work, sign), "");
    await served;
  }
}

async function listed(program: Program, place: Place, model: Model): Promise<string[]> {
  const { out } = await start(program, place, model, ["session", "list", "--format", "json"]);
  const at = out.indexOf("[");
  return at < 0 ? [] : (JSON.parse(out.slice(at)) as { id: string }[]).map(({ id }) => id);
}

function start(
  { command }: Program,
  place: Place,
  model: Model,
  args: readonly string[],
  { killedAt }: Partial<Turn> = {},
): Promise<Ended> {
  const config = {
    ...{ autoupdate: false, share: "disabled", model: "lab/heron-1", small_model: "lab/heron-1" },
    provider: {
      lab: {
        npm: "@ai-sdk/openai-compatible",
        options: { baseURL: `${model.origin}/v1`, apiKey: "none" },
        models: {
          "heron-1": { name: "heron-1", tool_call: true, reasoning: true, limit: { context: 100_000, output: 1_000 } },
        },
      },
    },
    permission: { "*": "allow" },
  };
  mkdirSync(join(place.home, ".config/opencode"), { recursive: true });
  const path = join(place.home, ".config/opencode/opencode.json");
  writeFileSync(path, JSON.stringify(config));
  return run([...command, ...args], place, {
    killedAt,
    outFile: join(place.home, OUT),
    env: {
      ...{ XDG_DATA_HOME: join(place.home, ".local/share"), XDG_CONFIG_HOME: join(place.home, ".config") },
      ...{ XDG_CACHE_HOME: join(place.home, ".cache"), XDG_STATE_HOME: join(place.home, ".local/state") },
      ...{ OPENCODE_CONFIG: path, OPENCODE_DISABLE_AUTOUPDATE: "1", OPENCODE_DISABLE_MODELS_FETCH: "1" },
      ...{ OPENCODE_DISABLE_LSP_DOWNLOAD: "1", OPENCODE_DISABLE_DEFAULT_PLUGINS: "1" },
    },
  });
}

function unitsOf({ messages }: Exported): Unit[] {
  return messages.flatMap(({ info, parts }) =>
    parts.flatMap(({ type, text = "", tool, callID, state }): Unit[] => {
      const said = info.role === "assistant" ? "assistant" : "user";
      if (type === "text") return [{ kind: said, text }];
      if (type === "reasoning") return [{ kind: "reasoning", text }];
      if (type !== "tool") return [];
      const call = { kind: "call", text: JSON.stringify(state?.input), call: callID!, name: tool! } as const;
      const result = state?.output ?? state?.error;
      return [call, ...(result === undefined ? [] : [{ kind: "result", text: result, call: callID! } as const])];
    }),
  );
}

function toolFor(act: Act): Tool {
  if ("run" in act) return { name: "bash", input: { command: act.run, description: "Runs it" } };
  if ("read" in act) return { name: "read", input: { filePath: act.read } };
  if ("write" in act) return { name: "write", input: { filePath: act.write, content: act.text } };
  return { name: "task", input: { description: "Counts", prompt: act.ask, subagent_type: "general" } };
}
