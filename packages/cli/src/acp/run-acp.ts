import { Readable, Writable } from "node:stream";
import { ndJsonStream } from "@agentclientprotocol/sdk/unstable";
import { type AgentOptions, serveAgent } from "@holdfast/acp";
import type { Config } from "../config.ts";
import { openLocalHost } from "../host/local/local-host.ts";
import { plainLine } from "../terminal/plain.ts";
import { version } from "../version.ts";
import { wordsForEditors } from "./call-words.ts";

/** The model that needs no key. */
const OFFLINE = "offline/offline";

/**
 * Serves the agent to the editor that started this process, until it closes standard input. `server`: the address of
 * the server in which the agent runs; its turns outlive the editor.
 */
export async function runAcp(config: Config, server?: string): Promise<void> {
  const log = (line: string): void => void process.stderr.write(`holdfast: ${plainLine(line)}\n`);
  const { host, editor, remove } = server === undefined ? await hostHere(config) : await hostAt(server);
  try {
    for (const warning of host.warnings) log(warning);
    const { closed } = serveAgent(
      {
        ...{ host, version, log, words: wordsForEditors },
        models: config.model.includes("/") ? [config.model, OFFLINE] : [OFFLINE],
        ...{ editor, remove },
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

type ServedAgent = Pick<AgentOptions, "host" | "editor" | "remove">;

async function hostHere(config: Config): Promise<ServedAgent> {
  const host = await openLocalHost({ config, asks: "person", offersServers: true });
  return {
    host,
    editor: { accept: (id, offer) => host.acceptOffer(id, offer), drop: (id) => host.dropOffer(id) },
    remove: (id) => host.sessions.delete(id),
  };
}

async function hostAt(server: string): Promise<ServedAgent> {
  const { connect } = await import("../serve/connect.ts");
  const host = await connect(server);
  // Its tools run in the server, perhaps on another machine.
  return {
    host,
    editor: null,
    remove: async (id) => void (await host.client.call("deleteSession", { params: { id } })),
  };
}
