import {
  type AgentContext,
  type ClientCapabilities,
  type McpServer,
  methods,
  type TerminalHandle,
} from "@agentclientprotocol/sdk/unstable";
import type { EditorFiles, EditorTerminal, EditorTerminals, OfferedServer } from "@holdfast/server/internal/contract";

/** The files of an editor's project, with changes that are not saved yet. */
export function editorFiles(client: AgentContext, { fs }: ClientCapabilities, sessionId: string): EditorFiles {
  return {
    read: fs?.readTextFile
      ? async (path, signal) => {
          const { content } = await client.request(
            methods.client.fs.readTextFile,
            { sessionId, path },
            stoppedBy(AbortSignal.any([AbortSignal.timeout(READ_MS), ...(signal ? [signal] : [])])),
          );
          // The SDK does not check what an editor answers.
          if (typeof content !== "string") throw new Error("its answer holds no text");
          return content;
        }
      : null,
    write: fs?.writeTextFile
      ? async (path, content, signal) => {
          const asked = { sessionId, path, content };
          await client.request(methods.client.fs.writeTextFile, asked, signal ? stoppedBy(signal) : {});
        }
      : null,
  };
}

/** An editor that does not give a text for this long is not waited for: the file on disk is used. */
const READ_MS = 10_000;

function stoppedBy(cancellationSignal: AbortSignal) {
  return { cancellationSignal, stopWaitingOnCancel: true };
}

/** The terminals of an editor. `show`: embeds a terminal in the call that runs in it. */
export function editorTerminals(
  client: AgentContext,
  { terminal }: ClientCapabilities,
  sessionId: string,
  show: (call: string, terminalId: string) => void,
): EditorTerminals | null {
  if (!terminal) return null;
  return {
    create: async (call, { command, args, env, cwd, outputBytesMax }) => {
      const terminal = await client.createTerminal({
        ...{ sessionId, command, args: [...args], cwd, outputByteLimit: outputBytesMax },
        env: Object.entries(env).map(([name, value]) => ({ name, value })),
      });
      if (typeof terminal.id !== "string") throw new Error("its answer names no terminal");
      show(call, terminal.id);
      return openTerminal(terminal);
    },
  };
}

function openTerminal(terminal: TerminalHandle): EditorTerminal {
  return {
    ended: terminal.waitForExit().then(({ exitCode, signal }) => ({ code: exitCode ?? null, by: signal ?? null })),
    output: async () => {
      const { output, truncated } = await terminal.currentOutput();
      return { text: output, isCut: truncated };
    },
    kill: async () => {
      await terminal.kill();
    },
    release: async () => {
      await terminal.release();
    },
  };
}

/** The editor's MCP servers that this agent can use, and in words those that it cannot. */
export function offeredServers(servers: readonly McpServer[]): {
  readonly servers: readonly OfferedServer[];
  readonly problems: readonly string[];
} {
  const offered: OfferedServer[] = [];
  const problems: string[] = [];
  for (const server of servers) {
    const { name } = server;
    if (!("type" in server)) {
      offered.push({ name, command: server.command, args: server.args, env: valuesOf(server.env) });
    } else if (server.type === "http") {
      offered.push({ name, url: server.url, headers: valuesOf(server.headers) });
    } else {
      problems.push(
        `The MCP server "${name}" is not used: this agent cannot reach servers of the type "${server.type}".`,
      );
    }
  }
  return { servers: offered, problems };
}

function valuesOf(pairs: readonly { readonly name: string; readonly value: string }[]): Record<string, string> {
  return Object.fromEntries(pairs.map(({ name, value }) => [name, value]));
}
