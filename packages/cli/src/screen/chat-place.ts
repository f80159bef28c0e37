import { createInterface } from "node:readline/promises";
import { isHoldfastError } from "holdfast";
import type { Config } from "../config.ts";
import { exported, type Format } from "../export/index.ts";
import type { Host } from "../host/host.ts";
import { openLocalHost } from "../host/local/local-host.ts";
import { serverOf } from "../serve/server-files.ts";
import { resolveId } from "../store/session-id.ts";
import { plainLine } from "../terminal/index.ts";
import { shortId } from "./lines/labels.ts";

/** Where a chat runs: in this process, or in a server. */
export interface ChatPlace {
  readonly host: Host;
  /** The folder of a new session. */
  readonly cwd: string;
  /** The address of the server; null in this process. */
  readonly server: string | null;
  /** The session that the user means. Throws CommandError SESSION_NOT_FOUND, SESSION_AMBIGUOUS. */
  find(given: string): Promise<string>;
  export(id: string, format: Format): AsyncIterable<string>;
}

export async function localPlace(config: Config): Promise<ChatPlace> {
  const host = await openLocalHost({ config, asks: "person" });
  return {
    host,
    cwd: process.cwd(),
    server: null,
    find: (given) => resolveId(host.sessions, given),
    export: (id, format) => exported(host.sessions, id, { format }),
  };
}

/** `folder`: a folder on the server's machine. On this one, it is the current folder. */
export async function remotePlace(address: string, folder: string | undefined): Promise<ChatPlace> {
  const { connect, sessionsOf } = await import("../serve/connect.ts");
  const host = await connect(address);
  const { client } = host;
  const { cwd } = await client.call("getServer");
  const isHere = /^http:\/\/(?:localhost|127\.|\[::1\])/.test(client.url);
  return {
    host,
    cwd: folder ?? (isHere ? process.cwd() : (cwd ?? "/")),
    server: client.url,
    find: (given) => resolveId(sessionsOf(host), given),
    async *export(id, format) {
      const asked = format === "html" || format === "jsonl" || format === "messages" ? format : "markdown";
      yield await client.call("exportSession", { params: { id }, query: { format: asked } });
    },
  };
}

/** The server that holds the session that could not be opened, if the person wants to attach to it; else null. */
export async function offerServer(error: unknown): Promise<{ readonly url: string; readonly session: string } | null> {
  if (!isHoldfastError(error, "SESSION_BUSY")) return null;
  const { holder, session } = error.facts;
  const server = serverOf(holder);
  if (!server || typeof session !== "string") return null;
  const lines = createInterface({ input: process.stdin, output: process.stdout });
  try {
    const answer = await lines.question(
      `A server has session ${shortId(session)} open (${plainLine(server.url)}). Attach to it? [Y/n] `,
    );
    return /^(?:y(?:es)?)?$/i.test(answer.trim()) ? { url: server.url, session } : null;
  } finally {
    lines.close();
  }
}
