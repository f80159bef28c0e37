import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as passed } from "node:timers/promises";
import {
  type ClientCapabilities,
  type ContentBlock,
  methods,
  type SessionUpdate,
} from "@agentclientprotocol/sdk/unstable";
import { seededRandom } from "@holdfast/testkit/internal/simulation";
import { expect, test } from "vitest";
import { temporaryHome } from "../command.ts";
import { type Editor, openEditor } from "../editor.ts";
import { EditorProject } from "../editor-project.ts";

/** For each kind of editor. */
const KILLS = 14;
/** How often one turn is killed at most. */
const KILLS_OF_ONE = 4;
const PROMPT =
  "1. write a.txt: one 2. append a.txt: two 3. run sleep 0.1 && echo three >> b.txt (makes b.txt) 4. append a.txt: four";
const { session } = methods.agent;
const said = (text: string): ContentBlock[] => [{ type: "text", text }];

const seed = Number(process.env["HOLDFAST_SEED"] ?? Date.now() % 1_000_000);

type CallUpdate = Extract<SessionUpdate, { sessionUpdate: "tool_call" | "tool_call_update" }>;

/** The last status that the editor was told of each call. */
function statuses({ updates }: Editor): Map<string, string> {
  const found = new Map<string, string>();
  for (const { update } of updates) {
    const { sessionUpdate } = update;
    if (sessionUpdate !== "tool_call" && sessionUpdate !== "tool_call_update") continue;
    const { toolCallId, status } = update as CallUpdate;
    if (status) found.set(toolCallId, status);
  }
  return found;
}

const EDITORS: readonly [string, ClientCapabilities][] = [
  ["that offers nothing", {}],
  ["with its own files and terminals", { fs: { readTextFile: true, writeTextFile: true }, terminal: true }],
];

test.each(EDITORS)(
  `P2, P5: an agent killed ${KILLS} times by an editor %s: every load shows what was seen, and no effect comes twice`,
  async (_, capabilities) => {
    console.log(`seed ${seed}; to repeat: HOLDFAST_SEED=${seed}`);
    const random = seededRandom(seed);
    for (let kills = 0; kills < KILLS; ) {
      using home = temporaryHome();
      const args = ["--allow", "write", "--allow", "edit", "--allow", "shell"];
      let project = new EditorProject(capabilities);
      const open = () => openEditor(home, async () => "allow", args, project);
      let editor = await open();
      const { sessionId } = await editor.agent.request(session.new, { cwd: home.work, mcpServers: [] });
      let prompt = PROMPT;
      for (let lives = 0; ; lives++) {
        const turn = editor.agent.request(session.prompt, { sessionId, prompt: said(prompt) });
        if (lives === KILLS_OF_ONE) {
          expect(await turn).toEqual({ stopReason: "end_turn" });
          break;
        }
        turn.catch(() => undefined);
        await passed(random.below(900));
        await editor.kill();
        kills += 1;
        const seen = statuses(editor);
        // Editors end the terminals of an agent that is gone.
        await project.close();
        project = new EditorProject(capabilities);
        editor = await open();
        await editor.agent.request(session.load, { sessionId, cwd: home.work, mcpServers: [] });
        const shown = statuses(editor);
        for (const [call, status] of seen) {
          const now = shown.get(call);
          const where = `call ${call} was ${status} and is ${now}; seed ${seed}, kill ${kills}`;
          // A call with an unknown outcome is shown as failed, and /finish may find out that it completed.
          if (status === "completed") expect(now, where).toBe(status);
          else expect(["completed", "failed"], where).toContain(now);
        }
        const first = editor.updates.find(({ update }) => update.sessionUpdate === "user_message_chunk");
        // Killed before the prompt was recorded, the editor's request failed, and nothing was said.
        if (first) expect(first.update).toMatchObject({ content: { text: PROMPT } });
        else expect(seen.size).toBe(0);
        prompt = first ? "/finish" : PROMPT;
      }
      expect(await editor.leave()).toBe(0);
      expect(project.open).toEqual([]);
      expect(readFileSync(join(home.work, "a.txt"), "utf8").trim().split("\n")).toEqual(["one", "two", "four"]);
      expect(readFileSync(join(home.work, "b.txt"), "utf8")).toBe("three\n");
    }
  },
);
