import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Agent, Place, Verdict } from "./agent.ts";
import { lineDamage } from "./damage.ts";
import { filesBelow } from "./files.ts";
import { type Model, startModel, type Tool } from "./model.ts";
import type { Program } from "./programs.ts";
import { type Ended, run } from "./run.ts";
import { type Act, EMPTY, type Turn } from "./stories.ts";

const PROBE = "This is the laboratory's prompt.";
/** What it puts before the conversation each time. */
const CONTEXT =
  /^<(?:environment_context|user_instructions|permissions|skills|apps|plugins|INSTRUCTIONS)|^# AGENTS\.md/;

export const codex: Agent = {
  name: "codex",
  format: "codex",
  stories: ["talk", "work", "killed", "killed-resumed", "compacted", "two"],
  async write(program, place, story) {
    await using model = await startModel("openai-responses", story, toolFor);
    const ids: string[] = [];
    for (const turns of story.sessions) {
      let before: Turn | undefined;
      for (const turn of turns) {
        const at = before === undefined ? [] : ["resume", ids.at(-1)!];
        const limit = before?.compact ? ["-c", "model_auto_compact_token_limit=20"] : [];
        const known = idsOf(place);
        await exec(program, place, model, [...limit, ...at, turn.prompt], turn.killedAt);
        if (before === undefined) ids.push(idsOf(place).find((id) => !known.includes(id))!);
        before = turn;
      }
    }
    return ids;
  },
  isRecorded: (path) => /^\.codex\/(?:sessions\/|(?:state|thread_history)_\d+\.sqlite$|[^/]*\.jsonl$)/.test(path),
  harmedStory: "work",
  damage: lineDamage({
    isConversation: (line) => line.includes('"type":"response_item"'),
    isResult: (line) => line.includes('"type":"function_call_output"'),
    isCall: (line) => line.includes('"type":"function_call"'),
    input: /("arguments":)"(?:[^"\\]|\\.)*"/,
  }),
  fileOf: ({ home }, id) => filesBelow(join(home, ".codex/sessions")).find((path) => path.includes(id)),
  async judge(program, place, id): Promise<Verdict> {
    await using model = await startModel("openai-responses", EMPTY, toolFor);
    const { status, out, err } = await exec(program, place, model, ["resume", id, PROBE]);
    const request = model.requests.find((units) => units.some(({ text }) => text === PROBE)) ?? [];
    const units = request.filter(({ text }) => text !== PROBE && !CONTEXT.test(text));
    // An id that it does not know begins another session.
    const loads = status === 0 && units.length > 0;
    return { isListed: null, loads, says: loads ? "" : `${out}${err}`.trim().split("\n").slice(-6).join("\n"), units };
  },
};

function exec(
  { command }: Program,
  place: Place,
  model: Model,
  args: readonly string[],
  killedAt?: string,
): Promise<Ended> {
  const folder = join(place.home, ".codex");
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "instructions.md"), "You help.\n");
  const settings = {
    model: "gpt-5",
    model_provider: "lab",
    "model_providers.lab.name": "lab",
    "model_providers.lab.base_url": `${model.origin}/v1`,
    "model_providers.lab.wire_api": "responses",
    model_instructions_file: join(folder, "instructions.md"),
    check_for_update_on_startup: false,
    "analytics.enabled": false,
  };
  const given = Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${JSON.stringify(value)}`]);
  const all = [...command, "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", ...given];
  return run([...all, ...args], place, { killedAt, env: { CODEX_HOME: folder } });
}

function idsOf({ home }: Place): string[] {
  const folder = join(home, ".codex/sessions");
  mkdirSync(folder, { recursive: true });
  return readdirSync(folder, { recursive: true, encoding: "utf8" }).flatMap(
    (path) => /rollout-.{19}-([0-9a-f-]{36})\.jsonl/.exec(path)?.[1] ?? [],
  );
}

/** It has one tool for everything. */
function toolFor(act: Act): Tool {
  const shell = (cmd: string): Tool => ({ name: "exec_command", input: { cmd } });
  if ("run" in act) return shell(act.run);
  if ("read" in act) return shell(`cat ${act.read}`);
  if ("write" in act) return shell(`cat > ${act.write} <<'END'\n${act.text}END`);
  throw new Error("no sub-agents here");
}
