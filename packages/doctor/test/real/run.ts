import { spawn } from "node:child_process";
import { closeSync, existsSync, mkdirSync, openSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as passed } from "node:timers/promises";
import type { Place } from "./agent.ts";

export interface Ended {
  /** null if it was killed. */
  readonly status: number | null;
  readonly out: string;
  readonly err: string;
}

export interface Start {
  readonly env: Readonly<Record<string, string>>;
  /** Kills it and all of its commands once this file is there. */
  readonly killedAt?: string | undefined;
  readonly limitMs?: number;
  readonly input?: string;
  /** Its standard output is this file: some programs end before a pipe has taken everything. */
  readonly outFile?: string;
  /** Its input stays open until it has said this. */
  readonly inputEndsAt?: string;
}

/** Nothing here may reach the network: a request that leaves the machine fails at once. */
const OFFLINE = {
  ...{ HTTP_PROXY: "http://127.0.0.1:9", HTTPS_PROXY: "http://127.0.0.1:9" },
  ...{ http_proxy: "http://127.0.0.1:9", https_proxy: "http://127.0.0.1:9" },
  ...{ NO_PROXY: "127.0.0.1,localhost", no_proxy: "127.0.0.1,localhost" },
};

/** Runs a program in the place, in a group of its own, which ends with it. */
export async function run(command: readonly string[], { home, work }: Place, start: Start): Promise<Ended> {
  mkdirSync(work, { recursive: true });
  mkdirSync(join(home, ".tmp"), { recursive: true });
  const file = start.outFile === undefined ? null : openSync(start.outFile, "w+");
  const [program, ...args] = command as [string, ...string[]];
  const child = spawn("nice", [program, ...args], {
    cwd: work,
    detached: true,
    stdio: [start.input === undefined ? "ignore" : "pipe", file ?? "pipe", "pipe"],
    env: {
      ...{ PATH: process.env["PATH"]!, LANG: "C.UTF-8", TERM: "dumb", SHELL: "/bin/bash", USER: "ada" },
      ...OFFLINE,
      ...{ HOME: home, TMPDIR: join(home, ".tmp"), CI: "1", NO_COLOR: "1" },
      ...start.env,
    },
  });
  child.stdin?.write(start.input!);
  if (start.inputEndsAt === undefined) child.stdin?.end();
  let [out, err] = ["", ""];
  child.stdout?.setEncoding("utf8").on("data", (text: string) => {
    out += text;
    if (start.inputEndsAt !== undefined && out.includes(start.inputEndsAt)) child.stdin?.end();
  });
  child.stderr!.setEncoding("utf8").on("data", (text: string) => {
    err += text;
  });
  const end = (): void => {
    try {
      process.kill(-child.pid!, "SIGKILL");
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
    }
  };
  const closed = new Promise<number | null>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code) => resolve(code));
  });
  let isOver = false;
  const watch = async (): Promise<void> => {
    const deadline = performance.now() + (start.limitMs ?? 120_000);
    const sign = start.killedAt === undefined ? null : join(work, start.killedAt);
    while (!isOver && performance.now() < deadline && !(sign !== null && existsSync(sign))) await passed(50);
    if (!isOver && sign !== null) await passed(1_500);
    if (!isOver) end();
  };
  const watched = watch();
  const status = await closed;
  isOver = true;
  await watched;
  end();
  if (file !== null) {
    closeSync(file);
    out = readFileSync(start.outFile!, "utf8");
  }
  return { status, out, err };
}
