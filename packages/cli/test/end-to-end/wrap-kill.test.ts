import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { methods } from "@agentclientprotocol/sdk/unstable";
import { expect, test } from "vitest";
import { type Home, temporaryHome } from "../command.ts";
import { type Editor, editorOf, shownIn } from "../editor.ts";
import { eventually, processesWith } from "./run-lines.ts";

/** Kills {the group, the whole tree, the shim, the supervisor, the agent} × {idle, streaming, permission, tool}. */

const { session } = methods.agent;
const said = (text: string) => [{ type: "text" as const, text }];
const AGENT = join(import.meta.dirname, "../agents/plain-agent.ts");
const effectsOf = (home: Home): string => join(home.path, "effects.txt");

const open = (home: Home, answer: () => Promise<string | null>, args: readonly string[] = []): Promise<Editor> =>
  editorOf(
    home.start(["wrap", "--grace", "0.1", ...args, "--", process.execPath, AGENT, "nothing", effectsOf(home)], {
      detached: true,
    }),
    answer,
  );

/** What the supervisor wrote beside its socket. */
async function facts(home: Home): Promise<{ readonly pid: number; readonly agent: { readonly pid: number } }> {
  const folder = join(home.path, "state/holdfast/run");
  let found = { pid: 0, agent: null as { pid: number } | null };
  await eventually(() => {
    for (const name of readdirSync(folder).filter((one) => one.endsWith(".json")))
      found = JSON.parse(readFileSync(join(folder, name), "utf8") || "{}") as typeof found;
    return found.agent != null;
  });
  return found as { pid: number; agent: { pid: number } };
}

function descendants(pid: number): number[] {
  const children = readdirSync("/proc").flatMap((name) => {
    if (!/^\d+$/.test(name)) return [];
    try {
      const stat = readFileSync(`/proc/${name}/stat`, "utf8");
      return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1] === String(pid) ? [Number(name)] : [];
    } catch {
      // It has ended meanwhile.
      return [];
    }
  });
  return children.flatMap((child) => [child, ...descendants(child)]);
}

const kill = (pid: number): void => {
  try {
    process.kill(pid, "SIGKILL");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
};

const KILLS = {
  "the process group": async (editor: Editor) => kill(-editor.child.pid!),
  "the whole tree": async (editor: Editor) => {
    for (const pid of [...descendants(editor.child.pid!), editor.child.pid!]) kill(pid);
    kill(-editor.child.pid!);
  },
  "the shim alone": async (editor: Editor) => kill(editor.child.pid!),
  "the supervisor alone": async (_: Editor, home: Home) => kill((await facts(home)).pid),
  "the agent alone": async (_: Editor, home: Home) => kill((await facts(home)).agent.pid),
} as const;

const STATES = {
  idle: async () => undefined,
  streaming: async (editor: Editor) => {
    const before = editor.updates.length;
    await eventually(() => editor.updates.length > before + 5);
  },
  "permission open": (editor: Editor) => eventually(() => editor.asked.length === 1),
  // The agent starts its tool while the supervisor may still be about to record that.
  "tool running": (editor: Editor, home: Home) =>
    eventually(
      () =>
        editor.updates.some(({ update }) => update.sessionUpdate === "tool_call") &&
        processesWith(`tool of ${effectsOf(home)}`).length > 0,
    ),
} as const;
const PROMPTS = { idle: null, streaming: "slow", "permission open": "tool", "tool running": "run" } as const;

const cases = (Object.keys(KILLS) as (keyof typeof KILLS)[]).flatMap((what) =>
  (Object.keys(STATES) as (keyof typeof STATES)[]).map((when) => [what, when] as const),
);

test.concurrent.each(cases)(
  "kill %s while %s: everything is there, and nothing is left running",
  async (what, when) => {
    using home = temporaryHome();
    const never = () => new Promise<never>(() => undefined);
    const first = await open(home, never);
    const { sessionId } = await first.agent.request(session.new, { cwd: home.work, mcpServers: [] });
    await first.agent.request(session.prompt, { sessionId, prompt: said("remember the word heron") });
    const prompt = PROMPTS[when];
    const turn =
      prompt === null
        ? null
        : first.agent.request(session.prompt, { sessionId, prompt: said(prompt) }).then(
            () => "answered",
            (error: Error) => error.message,
          );
    await STATES[when](first, home);
    const seen = shownIn(first.updates, sessionId)
      .filter((line) => line.startsWith("agent:"))
      .join("");
    await KILLS[what](first, home);

    const isEditorAlive = what === "the supervisor alone" || what === "the agent alone";
    if (isEditorAlive) {
      if (turn) expect(await turn).toMatch(what === "the agent alone" ? /The agent has ended/ : /has died/);
      // In the same panel. A prompt that meets the death is refused, and never sent again by itself.
      let refused = 0;
      const ask = () => first.agent.request(session.prompt, { sessionId, prompt: said("and now?") });
      while (!(await ask().catch((error: Error) => void expect(error.message).toMatch(/has died|has ended/))))
        refused += 1;
      expect(refused).toBeLessThan(2);
      expect(shownIn(first.updates, sessionId).at(-1)).toMatch(/> User: remember the word heron[\s\S]*and now\?$/);
      expect(await first.leave()).toBe(0);
    }
    await eventually(() => processesWith(home.path).length === 0);
    expect(readdirSync(join(home.path, "state/holdfast/run"))).toEqual([]);

    const second = await open(home, never);
    await second.agent.request(session.load, { sessionId, cwd: home.work, mcpServers: [] });
    const shown = shownIn(second.updates, sessionId);
    const users = shown.filter((line) => line.startsWith("user:"));
    expect(users[0]).toBe("user: remember the word heron");
    if (prompt !== null) expect(users[1]).toBe(`user: ${prompt}`);
    if (isEditorAlive) expect(users.at(-1)).toMatch(/and now\?$/);
    const texts = shown.filter((line) => line.startsWith("agent:")).join("");
    expect(texts.replaceAll("agent: ", "")).toContain(seen.replaceAll("agent: ", ""));
    const call = shown.find((line) => /^(?:Append|Run)/.test(line));
    if (when === "permission open" || when === "tool running") expect(call).toMatch(/failed: /);
    else expect(call).toBeUndefined();
    expect(processesWith(`tool of ${effectsOf(home)}`)).toEqual([]);
    expect(await second.leave()).toBe(0);
    await eventually(() => processesWith(home.path).length === 0);
  },
);
