import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import type { Agent, Place, Verdict } from "./agent.ts";
import { heard } from "./heard.ts";
import { type Model, startModel, type Tool } from "./model.ts";
import type { Program } from "./programs.ts";
import { type Ended, run } from "./run.ts";
import type { Act } from "./stories.ts";

/** The command `cline` of npm, which keeps its sessions in another form than the extension of VS Code. */
/** Asks the program's own library, in a process whose home this is. */
const READ = `
  const [library, id] = process.argv.slice(1);
  const { ClineCore } = await import(library);
  const core = await ClineCore.create({ backendMode: "local" });
  const listed = await core.list();
  const messages = await core.readMessages(id).catch((error) => String(error));
  console.log("read " + JSON.stringify({ isListed: JSON.stringify(listed).includes(id), messages }));
  process.exit(0);
`;

/**
 * The command `cline` of npm, which keeps its sessions in another form than the extension of VS Code. It resumes only
 * at a terminal, so every turn is a session of its own.
 */
export const cline: Agent = {
  name: "cline",
  format: "cline",
  stories: ["work", "killed"],
  async write(program, place, story) {
    await using model = await startModel("openai-chat", story, (act) => toolFor(act, place));
    for (const { prompt, killedAt } of story.sessions.flat()) {
      await clineCli(program, place, model, [prompt], killedAt);
      stopHub(place);
    }
    return idsOf(place);
  },
  isRecorded: (path) => /^\.cline\/data\/(?:sessions\/|db\/(?:sessions|session-search)\.db$)/.test(path),
  harmedStory: "work",
  damage: [],
  fileOf: ({ home }, id) => join(home, ".cline/data/sessions", id, `${id}.messages.json`),
  async judge({ file }, place, id): Promise<Verdict> {
    const library = pathToFileURL(join(dirname(file), "../../@cline/core/dist/index.js")).href;
    const { out, err } = await run([process.execPath, "--input-type=module", "-e", READ, library, id], place, {
      env: { CLINE_TELEMETRY_DISABLED: "1" },
    });
    stopHub(place);
    const said = out.split("\n").find((line) => line.startsWith("read "));
    if (said === undefined) return { isListed: null, loads: false, says: err.trim(), units: [] };
    const { isListed, messages } = JSON.parse(said.slice(5)) as { isListed: boolean; messages: unknown };
    const units = Array.isArray(messages) ? heard("anthropic", { messages }) : [];
    const loads = units.length > 0;
    return { isListed, loads, says: loads ? "" : String(messages), units };
  },
};

function clineCli(
  { command }: Program,
  place: Place,
  model: Model,
  args: readonly string[],
  killedAt?: string,
): Promise<Ended> {
  const settings = { provider: "openai-compatible", apiKey: "none", model: "heron-1", baseUrl: `${model.origin}/v1` };
  const providers = {
    ...{ version: 1, lastUsedProvider: settings.provider, modes: {} },
    providers: { [settings.provider]: { settings, updatedAt: "2026-01-01T00:00:00.000Z", tokenSource: "manual" } },
  };
  const folder = join(place.home, ".cline/data/settings");
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "providers.json"), JSON.stringify(providers));
  return run([...command, ...args], place, { killedAt, env: { CLINE_TELEMETRY_DISABLED: "1" } });
}

function idsOf({ home }: Place): string[] {
  try {
    return readdirSync(join(home, ".cline/data/sessions"));
  } catch {
    return [];
  }
}

/** It starts a server that outlives it. */
function stopHub({ home }: Place): void {
  const path = join(home, ".cline/data/locks/hub/production.json");
  if (!existsSync(path)) return;
  const { pid } = JSON.parse(readFileSync(path, "utf8")) as { pid: number };
  rmSync(path);
  try {
    process.kill(pid, "SIGKILL");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

function toolFor(act: Act, { work }: Place): Tool {
  if ("run" in act) return { name: "run_commands", input: { commands: [act.run] } };
  if ("read" in act) return { name: "read_files", input: { files: [{ path: join(work, act.read) }] } };
  if ("write" in act) return { name: "editor", input: { path: join(work, act.write), new_text: act.text } };
  throw new Error("no sub-agents here");
}
