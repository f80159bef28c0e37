import { randomUUID } from "node:crypto";
import { cpSync, mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import type { Agent, Place, Unit, Verdict } from "./agent.ts";
import { lineDamage } from "./damage.ts";
import { heardOfContents } from "./heard.ts";
import { type Model, startModel, type Tool } from "./model.ts";
import type { Program } from "./programs.ts";
import { type Ended, run } from "./run.ts";
import { type Act, EMPTY, type Turn } from "./stories.ts";

const PROBE = "This is the laboratory's prompt.";

/** What is used of Gemini CLI's own code. */
interface GeminiCore {
  loadConversationRecord(path: string): Promise<{ readonly sessionId: string; readonly messages: unknown[] } | null>;
  convertSessionToClientHistory(messages: unknown[]): { readonly content: Readonly<Record<string, unknown>> }[];
}

/** The command itself: what the request shows that follows a resume. */
export const gemini: Agent = {
  name: "gemini",
  format: "gemini",
  stories: ["talk", "work", "steps", "killed", "killed-resumed", "compacted", "two", "subagent"],
  async write(program, place, story) {
    await using model = await startModel("gemini", story, toolFor);
    const ids: string[] = [];
    for (const turns of story.sessions) {
      const id = randomUUID();
      let before: Turn | undefined;
      for (const turn of turns) {
        const at = before === undefined ? ["--session-id", id] : ["--resume", id];
        await geminiCli(program, place, model, [...at, "-p", turn.prompt], turn.killedAt, before?.compact);
        before = turn;
      }
      ids.push(id);
    }
    return ids;
  },
  isRecorded: (path) => /^\.gemini\/(?:tmp\/[^/]+\/(?:chats\/|\.project_root$|logs\.json$)|projects\.json$)/.test(path),
  // A resume writes a snapshot of everything, which makes earlier damage harmless.
  harmedStory: "steps",
  damage: lineDamage({
    isConversation: (line) => /^\{"id":/.test(line),
    isResult: (line) => /^\{"id":/.test(line) && line.includes('"functionResponse"'),
    isCall: (line) => /^\{"id":/.test(line) && line.includes('"toolCalls"'),
    input: /("args":)\{[^{}]*\}/,
  }),
  fileOf: (place, id) => chatsOf(place).find((path) => path.includes(id.slice(0, 8))),
  async judge(program, place, id): Promise<Verdict> {
    await using model = await startModel("gemini", EMPTY, toolFor);
    // Of a copy: listing deletes the older file of a session that has two, which a resume in another minute makes.
    const copy = { ...place, home: `${place.home}-listed` };
    cpSync(place.home, copy.home, { recursive: true });
    const list = await geminiCli(program, copy, model, ["--list-sessions"]);
    rmSync(copy.home, { recursive: true, force: true, maxRetries: 5 });
    const isListed = `${list.out}${list.err}`.includes(`[${id}]`);
    const { status, out, err } = await geminiCli(program, place, model, ["--resume", id, "-p", PROBE]);
    const request = model.requests.find((units) => units.some(({ text }) => text === PROBE)) ?? [];
    const units = request.filter(({ text }) => text !== PROBE && !text.startsWith("<session_context>"));
    const loads = status === 0 && request.length > 0;
    return { isListed, loads, says: loads ? "" : `${out}${err}`.trim(), units };
  },
};

/** The same code in this process: what the model would be shown. It takes milliseconds. */
export const geminiCore: Agent = {
  ...gemini,
  name: "gemini-core",
  stories: [],
  async judge({ file }, place, id) {
    const at = (path: string): string => pathToFileURL(join(dirname(file), "src", path)).href;
    const core: GeminiCore = {
      ...((await import(at("services/chatRecordingService.js"))) as GeminiCore),
      ...((await import(at("utils/sessionUtils.js"))) as GeminiCore),
    };
    // A resume in another minute leaves a second file with this id, with nothing in it but the context.
    let units: Unit[] = [];
    for (const path of chatsOf(place)) {
      const record = await core.loadConversationRecord(path);
      if (record === null || record.sessionId !== id) continue;
      const contents = core.convertSessionToClientHistory(record.messages).map(({ content }) => content);
      const all = heardOfContents(contents);
      if (all.length > units.length) units = all;
    }
    const loads = units.length > 0;
    return { isListed: loads, loads, says: loads ? "" : "no file has anything of this session", units };
  },
};

/** Not those of sub-agents, which are in folders of their own. */
function chatsOf({ home }: Place): string[] {
  const folder = join(home, ".gemini/tmp");
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((path) => /^[^/]+\/chats\/session-[^/]*\.jsonl?$/.test(path))
    .map((path) => join(folder, path));
}

function geminiCli(
  { command }: Program,
  place: Place,
  model: Model,
  args: readonly string[],
  killedAt?: string,
  compacts = false,
): Promise<Ended> {
  const settings = {
    security: { auth: { selectedType: "gemini-api-key" } },
    general: { enableAutoUpdate: false, enableAutoUpdateNotification: false },
    privacy: { usageStatisticsEnabled: false },
    ...(compacts ? { model: { compressionThreshold: 0.000_001 } } : {}),
  };
  mkdirSync(join(place.home, ".gemini"), { recursive: true });
  writeFileSync(join(place.home, ".gemini/settings.json"), JSON.stringify(settings));
  return run([...command, "-m", "gemini-2.5-flash", "--skip-trust", "--yolo", ...args], place, {
    killedAt,
    env: { GEMINI_API_KEY: "none", GEMINI_CLI_HOME: place.home, GOOGLE_GEMINI_BASE_URL: model.origin },
  });
}

function toolFor(act: Act): Tool {
  if ("run" in act) return { name: "run_shell_command", input: { command: act.run } };
  if ("read" in act) return { name: "read_file", input: { file_path: act.read } };
  if ("write" in act) return { name: "write_file", input: { file_path: act.write, content: act.text } };
  return { name: "invoke_agent", input: { agent_name: "generalist", prompt: act.ask } };
}
