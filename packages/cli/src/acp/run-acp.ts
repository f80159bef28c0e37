import { Readable, Writable } from "node:stream";
import { ndJsonStream } from "@agentclientprotocol/sdk/unstable";
import { serveAgent } from "@holdfast/acp";
import type { Config } from "../config.ts";
import { openLocalHost } from "../host/local/local-host.ts";
import { plainLine } from "../terminal/plain.ts";
import { version } from "../version.ts";
import { wordsForEditors } from "./call-words.ts";

/** The model that needs no key. */
const OFFLINE = "offline/offline";

/** Serves the agent to the editor that started this process, until it closes standard input. */
export async function runAcp(config: Config): Promise<void> {
  const log = (line: string): void => void process.stderr.write(`holdfast: ${plainLine(line)}\n`);
  const host = await openLocalHost({ config, asks: "person" });
  try {
    for (const warning of host.warnings) log(warning);
    const { closed } = serveAgent(
      {
        ...{ host, version, log, words: wordsForEditors },
        models: config.model.includes("/") ? [config.model, OFFLINE] : [OFFLINE],
        remove: (id) => host.sessions.delete(id),
      },
      ndJsonStream(
        Writable.toWeb(process.stdout),
        Readable.toWeb(process.stdin) as unknown as ReadableStream<Uint8Array>,
      ),
    );
    await closed;
  } finally {
    await host.close();
  }
}
