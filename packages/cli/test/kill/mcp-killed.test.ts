import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as passed } from "node:timers/promises";
import { expect, onTestFinished, test } from "vitest";
import { identify } from "../../src/tools/shell/process-groups.ts";
import { call, text } from "../unit/host/host-stage.ts";
import type { Job } from "./mcp-agent.ts";

interface Said {
  readonly session?: string;
  readonly items?: readonly { readonly kind: string; readonly state?: string; readonly output?: string }[];
}

function live(job: Job): { readonly said: Said[]; readonly kill: () => void; readonly ended: Promise<unknown> } {
  const program = join(import.meta.dirname, "mcp-agent.ts");
  const child = spawn(process.execPath, ["--conditions=holdfast-source", program, JSON.stringify(job)], {
    env: { PATH: process.env["PATH"], XDG_STATE_HOME: join(job.work, "state"), HOLDFAST_CONFIG: "" },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const said: Said[] = [];
  createInterface({ input: child.stdout }).on("line", (line) => void said.push(JSON.parse(line) as Said));
  onTestFinished(() => void child.kill("SIGKILL"));
  return { said, kill: () => child.kill("SIGKILL"), ended: once(child, "close") };
}

async function until(isSo: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await isSo())) await passed(10);
}

test.each(["normal", "deaf"])(
  "kill -9 of the agent in the middle of an MCP call: its server (%s) ends, the call does not run again, and the model is told",
  async (manner) => {
    const folder = mkdtempSync(join(tmpdir(), "holdfast-mcp-"));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const [store, work, file] = ["store", "work", "calls"].map((name) => join(folder, name)) as [
      string,
      string,
      string,
    ];
    mkdirSync(work);
    const args = [join(import.meta.dirname, "../mcp-server.ts"), manner];
    const servers = { test: { command: process.execPath, args, env: {}, timeoutSeconds: 60, enabled: true } };
    const base = { store, work, servers };
    const first = live({ ...base, steps: [[call("c1", "mcp__test__wait", { file })]] });
    await until(() => existsSync(file) && readFileSync(file, "utf8").endsWith("\n"));
    first.kill();
    await first.ended;
    // Its input has ended; the one that ignores that, and SIGTERM, is killed.
    const pid = Number(readFileSync(file, "utf8"));
    await until(async () => (await identify(pid)) === null);
    const resume = first.said[0]!.session!;
    const steps = [[call("c2", "mcp__test__echo", { text: "again" })], [text("done") as never]];
    const second = live({ ...base, resume, steps });
    await second.ended;
    const calls = second.said[1]!.items!.filter(({ kind }) => kind === "call");
    expect(calls.map(({ state, output }) => [state, output])).toEqual([
      [
        "unknown",
        "Started, then the process died: outcome unknown. It may have taken effect: check before repeating it.",
      ],
      ["done", "again"],
    ]);
    expect(readFileSync(file, "utf8").trim().split("\n")).toHaveLength(1);
  },
);
