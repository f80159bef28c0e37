import type { ChildProcessWithoutNullStreams } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { HoldfastClient } from "@holdfast/server/client";
import type { Home } from "./command.ts";

export interface Served extends AsyncDisposable {
  readonly child: ChildProcessWithoutNullStreams;
  readonly url: string;
  readonly token: string;
  readonly client: HoldfastClient;
  readonly output: () => string;
}

/** `holdfast serve`, ready for clients. */
export async function serve(
  home: Home,
  args: readonly string[] = [],
  env: Record<string, string> = {},
): Promise<Served> {
  const child = home.start(["serve", "--port", "0", ...args], { env });
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (text: string) => {
      output += text;
    });
  const url = await new Promise<string>((resolve, reject) => {
    child.stdout.on("data", () => {
      const found = /http:\/\/(?:[\d.]+|\[[\da-f:]+\]):\d+/.exec(output);
      if (found) resolve(found[0]);
    });
    child.once("exit", () => reject(new Error(output)));
  });
  const token = readFileSync(join(home.path, "state/holdfast/server/token"), "utf8").trim();
  const client = new HoldfastClient({ url, token });
  return {
    ...{ child, url, token, client, output: () => output },
    async [Symbol.asyncDispose]() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const exited = new Promise((resolve) => child.once("exit", resolve));
      child.kill("SIGKILL");
      await exited;
    },
  };
}
