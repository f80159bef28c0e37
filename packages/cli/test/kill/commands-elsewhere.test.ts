import { chmodSync, readdirSync, realpathSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as passed } from "node:timers/promises";
import { programBeside, Victim } from "@holdfast/testkit/internal/kill";
import { type CallAccount, openStore, type ToolProcess } from "holdfast";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ServerStage } from "../../../server/test/server-stage.ts";
import { readSession } from "../../src/mcp-server/read.ts";
import { outputsFolder } from "../../src/store/output-folders.ts";
import { isRunning, stopGroup } from "../../src/tools/shell/surviving-commands.ts";
import { Trust } from "../../src/trust/trust.ts";
import { holdfast } from "../command.ts";
import type { Job, Said } from "./processes-agent.ts";

/** R7b, for those who only look: what became of a command is told of a session that nobody has open. */

const program = programBeside(import.meta.url, "processes-agent");
const WAITS = "echo one; while [ ! -e go ]; do sleep 0.02; done; echo two; exit 5";

let stage: ServerStage;
let address: string;
beforeEach(async () => {
  stage = await ServerStage.start();
  address = realpathSync(stage.folder);
});
afterEach(() => stage[Symbol.asyncDispose]());

interface Left {
  readonly session: string;
  readonly process: ToolProcess;
}

/** Kills the agent of a program while it starts or runs its command. */
async function killed(app: string, at: Job["at"] = "printed"): Promise<Left> {
  const outputs = outputsFolder(address)!;
  const job: Job = { address, cwd: stage.work, outputs, command: WAITS, app, at };
  await using victim = new Victim<Said>(program, job);
  await victim.until("at");
  victim.kill();
  await victim.died;
  const { session } = await victim.until("session");
  const { pid, started } = await victim.until("process");
  return { session, process: { pid, started, group: true } };
}

interface Told {
  readonly shown: CallAccount;
  readonly served: CallAccount;
  /** What `mcp serve` says. */
  readonly read: string;
}

async function told(id: string): Promise<Told> {
  const env = { HOME: stage.work, XDG_STATE_HOME: process.env["XDG_STATE_HOME"] };
  const { code, stdout, stderr } = await holdfast(["show", id, "--json", "--store", address], { env });
  expect([code, stderr]).toEqual([0, ""]);
  const [shown] = JSON.parse(stdout).account.calls;
  const { account, interruption } = await stage.client.call("getSession", { params: { id } });
  const [served] = account.calls as CallAccount[];
  expect(interruption?.calls).toEqual(account.calls);
  await using store = await openStore(address);
  const { quoted = "" } = await readSession(store, { session: id, limit: 1, chars_per_text: 100 }, { redact: false });
  return { shown, served: served!, read: quoted };
}

async function until(isSo: () => Promise<boolean>): Promise<void> {
  for (let tries = 0; !(await isSo()); tries++) {
    if (tries > 2000) throw new Error("it never came");
    await passed(5);
  }
}

async function released({ process }: Left): Promise<void> {
  writeFileSync(join(stage.work, "go"), "");
  await until(async () => !(await isRunning(process)));
}

/** Every surface says the same of the call, and decides nothing. */
function expectTold({ shown, served, read }: Told, call: Partial<CallAccount>): void {
  for (const one of [shown, served]) {
    expect(one).toMatchObject(call);
    expect(one).not.toHaveProperty("onFinish");
  }
  expect(served).toEqual(shown);
  expect(read).toContain(`: ${shown.words}`);
}

describe("killed while a command ran, and not opened since", () => {
  test("the command has ended: its status is told, and the session's folder stays as it is", async () => {
    const left = await killed("holdfast");
    await released(left);
    const folder = join(address, "sessions", left.session);
    const before = readdirSync(folder).toSorted();
    expectTold(await told(left.session), {
      state: "ended",
      effect: "done",
      process: { pid: left.process.pid, running: false, exitCode: 5 },
      words: "has since exited with status 5",
    });
    expect(readdirSync(folder).toSorted()).toEqual(before);
  });

  test("the command still runs", async () => {
    const { session, process } = await killed("holdfast");
    try {
      // Its trace alone is not believed: anyone may have written the journal.
      expectTold(await told(session), { state: "outcome-unknown", process: { pid: process.pid, running: false } });
      new Trust(address).of(session).started(process);
      expectTold(await told(session), {
        state: "running",
        process: { pid: process.pid, running: true },
        words: `still running as process ${process.pid}`,
      });
    } finally {
      await stopGroup(process);
    }
  });

  test("others can write to the folder that says so: nothing in it is believed", async () => {
    const left = await killed("holdfast");
    await released(left);
    chmodSync(join(outputsFolder(address)!, left.session), 0o777);
    expectTold(await told(left.session), { state: "outcome-unknown", words: "started, outcome unknown" });
  });
});

describe("killed before the command's process was recorded", () => {
  test("this agent's command never began", async () => {
    const { session } = await killed("holdfast", "spawned");
    expectTold(await told(session), { state: "never-started", effect: "none" });
  });

  test("nothing is claimed of a tool of another program", async () => {
    const { session } = await killed("other", "spawned");
    expectTold(await told(session), { state: "outcome-unknown", effect: "possible" });
  });
});
