import { randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Agent, Place, Verdict } from "./agent.ts";
import { lineDamage } from "./damage.ts";
import { type Model, startModel, type Tool } from "./model.ts";
import type { Program } from "./programs.ts";
import { type Ended, run } from "./run.ts";
import { shortenLines } from "./shorten.ts";
import { type Act, EMPTY } from "./stories.ts";

const PROBE = "This is the laboratory's prompt.";

export const copilot: Agent = {
  name: "copilot",
  format: "copilot",
  stories: ["talk", "work", "killed", "killed-resumed", "compacted", "two", "subagent"],
  async write(program, place, story) {
    await using model = await startModel("openai-chat", story, (act) => toolFor(act, place));
    const ids: string[] = [];
    for (const turns of story.sessions) {
      const id = randomUUID();
      for (const [n, { prompt, killedAt, compact }] of turns.entries()) {
        const at = n === 0 ? [`--session-id=${id}`] : [`--resume=${id}`];
        await copilotCli(program, place, model, [...at, "-p", prompt], killedAt);
        if (compact) await copilotCli(program, place, model, [`--resume=${id}`, "-p", "/compact"]);
      }
      ids.push(id);
    }
    return ids;
  },
  isRecorded: (path) => /^\.copilot\/(?:session-state\/|session-store\.db$)/.test(path),
  shorten: ({ home }) => shortenLines(join(home, ".copilot/session-state"), withoutPrompt),
  harmedStory: "work",
  damage: lineDamage({
    isConversation: (line) => /"type":"(?:user|assistant)\.message"/.test(line),
    isResult: (line) => line.includes('"type":"tool.execution_complete"'),
    isCall: (line) => line.includes('"type":"assistant.message"') && line.includes('"toolCallId"'),
    input: /("arguments":)\{[^{}]*\}/,
  }),
  fileOf: ({ home }, id) => join(home, ".copilot/session-state", id, "events.jsonl"),
  async judge(program, place, id): Promise<Verdict> {
    const isThere = existsSync(join(place.home, ".copilot/session-state", id));
    await using model = await startModel("openai-chat", EMPTY, (act) => toolFor(act, place));
    const { status, out, err } = await copilotCli(program, place, model, [`--resume=${id}`, "-p", PROBE]);
    const request = model.requests.find((units) => units.some(({ text }) => text.includes(PROBE))) ?? [];
    const units = request.filter(({ text }) => !text.includes(PROBE));
    // An id that it does not know begins another session.
    const loads = status === 0 && isThere && units.length > 0;
    return { isListed: null, loads, says: loads ? "" : `${out}${err}`.trim(), units };
  },
};

/** Its own prompt is most of a session. */
function withoutPrompt(line: string): string {
  if (!line.startsWith('{"type":"system.message"')) return line;
  const event = JSON.parse(line) as { readonly data: object };
  return JSON.stringify({ ...event, data: { ...event.data, content: "You are the GitHub Copilot CLI." } });
}

function copilotCli(
  { command, file }: Program,
  place: Place,
  model: Model,
  args: readonly string[],
  killedAt?: string,
): Promise<Ended> {
  const tools = "--available-tools=bash,view,create,task,read_bash,stop_bash";
  const all = [...command, "--allow-all-tools", "--allow-all-paths", "--disable-builtin-mcps", tools, ...args];
  return run(all, place, {
    killedAt,
    env: {
      ...{ COPILOT_OFFLINE: "true", COPILOT_AUTO_UPDATE: "false", COPILOT_HOME: join(place.home, ".copilot") },
      ...{
        COPILOT_PROVIDER_BASE_URL: `${model.origin}/v1`,
        COPILOT_MODEL: "heron-1",
        COPILOT_PROVIDER_API_KEY: "none",
      },
      // It unpacks itself, which is no part of a home: 300 MB.
      COPILOT_CACHE_HOME: join(dirname(file), "unpacked"),
    },
  });
}

function toolFor(act: Act, { work }: Place): Tool {
  if ("run" in act)
    return { name: "bash", input: { command: act.run, description: "Runs it", mode: "sync", initial_wait: 30 } };
  if ("read" in act) return { name: "view", input: { path: join(work, act.read) } };
  if ("write" in act) return { name: "create", input: { path: join(work, act.write), file_text: act.text } };
  const input = {
    name: "counter",
    description: "Counts",
    prompt: act.ask,
    agent_type: "general-purpose",
    mode: "sync",
  };
  return { name: "task", input };
}
