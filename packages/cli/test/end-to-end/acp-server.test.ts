import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type ContentBlock, methods } from "@agentclientprotocol/sdk/unstable";
import { expect, test } from "vitest";
import { temporaryHome } from "../command.ts";
import { openEditor, shownIn } from "../editor.ts";
import { eventually } from "./run-lines.ts";

const { session } = methods.agent;
const said = (text: string): ContentBlock[] => [{ type: "text", text }];

test("C13: with --server the turn outlives its editor, and the next editor is shown all of it", async () => {
  using home = temporaryHome();
  const server = home.start(["serve", "--port", "0", "--allow", "shell"]);
  try {
    let output = "";
    server.stdout.setEncoding("utf8").on("data", (text: string) => {
      output += text;
    });
    await eventually(() => /http:\/\/[\d.]+:\d+/.test(output));
    const [url = ""] = /http:\/\/[\d.]+:\d+/.exec(output) ?? [];
    const open = () => openEditor(home, async () => "allow", ["--server", url]);

    const first = await open();
    const { sessionId } = await first.agent.request(session.new, { cwd: home.work, mcpServers: [] });
    first.agent
      .request(session.prompt, { sessionId, prompt: said("run sleep 1 && echo done >> done.txt") })
      .catch(() => undefined);
    await eventually(() => shownIn(first.updates, sessionId).some((line) => line.includes("in_progress")));
    await first.kill();
    await eventually(() => existsSync(join(home.work, "done.txt")));

    const second = await open();
    await second.agent.request(session.load, { sessionId, cwd: home.work, mcpServers: [] });
    await eventually(() => shownIn(second.updates, sessionId).some((line) => line.startsWith("agent:")));
    const shown = shownIn(second.updates, sessionId);
    expect(shown[0]).toBe("user: run sleep 1 && echo done >> done.txt");
    expect(shown.find((line) => line.startsWith("shell"))).toMatch(/completed/);
    expect(readFileSync(join(home.work, "done.txt"), "utf8")).toBe("done\n");
    const { stopReason } = (await second.agent.request(session.prompt, {
      sessionId,
      prompt: said("think about rivers"),
    })) as { stopReason: string };
    expect(stopReason).toBe("end_turn");
    expect(await second.leave()).toBe(0);
    expect(second.stderr()).toBe("");
  } finally {
    server.kill("SIGTERM");
  }
});
