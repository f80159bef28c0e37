import { randomUUID } from "node:crypto";
import { release } from "node:os";
import { basename, join } from "node:path";
import type { Agent, Place, Verdict } from "./agent.ts";
import { lineDamage } from "./damage.ts";
import { filesBelow } from "./files.ts";
import { type Model, startModel, type Tool } from "./model.ts";
import type { Program } from "./programs.ts";
import { type Ended, run } from "./run.ts";
import { shortenLines } from "./shorten.ts";
import { type Act, EMPTY } from "./stories.ts";

const PROBE = "This is the laboratory's prompt.";
/** Its own prompts and tools would be most of a recording. */
const SMALL = ["--system-prompt", "You help.", "--tools", "Bash,Read,Write,Task"];

export const claudeCode: Agent = {
  name: "claude-code",
  format: "claude-code",
  stories: ["talk", "work", "killed", "killed-resumed", "compacted", "two", "subagent"],
  async write(program, place, story) {
    await using model = await startModel("anthropic", story, (act) => toolFor(act, place));
    const ids: string[] = [];
    for (const turns of story.sessions) {
      const id = randomUUID();
      for (const [n, { prompt, killedAt, compact }] of turns.entries()) {
        const at = n === 0 ? ["--session-id", id] : ["--resume", id];
        await claude(program, place, model, [...at, prompt], killedAt);
        if (compact) await claude(program, place, model, ["--resume", id, "/compact"]);
      }
      ids.push(id);
    }
    return ids;
  },
  isRecorded: (path) => path.startsWith(".claude/projects/"),
  shorten: ({ home }) => shortenLines(join(home, ".claude/projects"), cleaned),
  harmedStory: "work",
  damage: lineDamage({
    isConversation: (line) => /"uuid":/.test(line) && /"type":"(?:user|assistant)"/.test(line),
    isResult: (line) => line.includes('"type":"tool_result"') && line.includes('"uuid":'),
    isCall: (line) => line.includes('"type":"tool_use"') && line.includes('"uuid":'),
    input: /("input":)\{[^{}]*\}/,
  }),
  fileOf: ({ home }, id) => filesBelow(join(home, ".claude/projects")).find((path) => basename(path) === `${id}.jsonl`),
  async judge(program, place, id): Promise<Verdict> {
    await using model = await startModel("anthropic", EMPTY, (act) => toolFor(act, place));
    const { status, out, err } = await claude(program, place, model, ["--resume", id, PROBE]);
    const request = model.requests.find((units) => units.some(({ text }) => text === PROBE)) ?? [];
    const units = request.filter(({ text }) => text !== PROBE && !text.startsWith("<system-reminder>"));
    const loads = status === 0 && request.length > 0;
    return { isListed: null, loads, says: loads ? "" : `${out}${err}`.trim(), units };
  },
};

/** Without the descriptions of tools, which it repeats, and the name of this machine's kernel. */
function cleaned(line: string): string {
  if (!line.includes('"tools":[{') && !line.includes(release())) return line;
  const isTools = (key: string, value: unknown): boolean => key === "tools" && typeof value === "object";
  const record = JSON.parse(line, (key, value) => (isTools(key, value) ? [] : value));
  return JSON.stringify(record).replaceAll(release(), "6.1.0");
}

function claude(
  { command }: Program,
  place: Place,
  model: Model,
  args: readonly string[],
  killedAt?: string,
): Promise<Ended> {
  // Its skills are most of the rest, but compaction is a command too.
  const rest = args.includes("/compact") ? args : ["--disable-slash-commands", ...args];
  const all = [...command, "-p", "--dangerously-skip-permissions", "--model", "claude-sonnet-4-5", ...SMALL];
  return run([...all, ...rest], place, {
    killedAt,
    env: {
      ANTHROPIC_BASE_URL: model.origin,
      ANTHROPIC_API_KEY: "none",
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
      DISABLE_AUTOUPDATER: "1",
      // It refuses to skip permissions for root outside of a sandbox.
      IS_SANDBOX: "1",
    },
  });
}

function toolFor(act: Act, { work }: Place): Tool {
  if ("run" in act) return { name: "Bash", input: { command: act.run, description: "Runs it" } };
  if ("read" in act) return { name: "Read", input: { file_path: `${work}/${act.read}` } };
  if ("write" in act) return { name: "Write", input: { file_path: `${work}/${act.write}`, content: act.text } };
  return { name: "Task", input: { description: "Counts", prompt: act.ask, subagent_type: "general-purpose" } };
}
