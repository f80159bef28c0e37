import type { ChildProcessWithoutNullStreams } from "node:child_process";
import { Readable, Writable } from "node:stream";
import {
  type AgentCapabilities,
  type ClientContext,
  client,
  methods,
  ndJsonStream,
  type RequestPermissionRequest,
  type SessionUpdate,
} from "@agentclientprotocol/sdk/unstable";
import type { Home } from "./command.ts";
import type { EditorProject } from "./editor-project.ts";

export interface Editor {
  readonly agent: ClientContext;
  /** What the agent says that it can do. */
  readonly capabilities: AgentCapabilities | undefined;
  readonly child: ChildProcessWithoutNullStreams;
  /** Everything that the agent said, with the session it said it in. */
  readonly updates: readonly { readonly session: string; readonly update: SessionUpdate }[];
  readonly asked: readonly RequestPermissionRequest[];
  stderr(): string;
  /** Its exit code, when it has ended and everything it said was read. */
  readonly ended: Promise<number | null>;
  /** As editors do it: without a warning. */
  kill(): Promise<void>;
  /** Closes standard input, and waits for the end. */
  leave(): Promise<number | null>;
}

/** The SDK's own client, around a real `holdfast acp`. `answer`: what the person says to a question. */
export async function openEditor(
  home: Home,
  answer: (asked: RequestPermissionRequest) => Promise<string | null> = async () => "allow",
  args: readonly string[] = [],
  project: EditorProject | null = null,
): Promise<Editor> {
  return editorOf(home.start(["acp", ...args]), answer, project);
}

/** The SDK's own client, around any agent. */
export async function editorOf(
  child: ChildProcessWithoutNullStreams,
  answer: (asked: RequestPermissionRequest) => Promise<string | null>,
  project: EditorProject | null = null,
): Promise<Editor> {
  let stderr = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
  });
  const ended = new Promise<number | null>((resolve) => child.once("close", (code) => resolve(code)));
  const updates: { session: string; update: SessionUpdate }[] = [];
  const asked: RequestPermissionRequest[] = [];
  // The SDK passes a message from handler to handler, and settles answers meanwhile: updates come first.
  const app = client({ name: "test" })
    .onNotification(methods.client.session.update, ({ params }) => {
      updates.push({ session: params.sessionId, update: params.update });
    })
    .onRequest(methods.client.session.requestPermission, async ({ params }) => {
      asked.push(params);
      const optionId = await answer(params);
      return { outcome: optionId === null ? { outcome: "cancelled" } : { outcome: "selected", optionId } };
    });
  project?.serve(app);
  const connection = app.connect(
    ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout) as unknown as ReadableStream<Uint8Array>),
  );
  connection.closed.catch(() => undefined);
  const { agentCapabilities: capabilities } = await connection.agent.request(methods.agent.initialize, {
    protocolVersion: 1,
    clientCapabilities: project?.capabilities ?? {},
  });
  return {
    ...{ agent: connection.agent, capabilities, child, updates, asked, ended },
    stderr: () => stderr,
    kill: async () => {
      child.kill("SIGKILL");
      await ended;
    },
    leave: async () => {
      connection.close();
      child.stdin.end();
      return ended;
    },
  };
}

/** What the updates say, joined as an editor shows them. */
export function shownIn(updates: Editor["updates"], session: string): string[] {
  const lines: { kind: string; id: unknown; text: string }[] = [];
  for (const { session: of, update } of updates) {
    if (of !== session) continue;
    const { sessionUpdate: kind } = update;
    if (kind === "tool_call" || kind === "tool_call_update") {
      const known = lines.findLast(({ id }) => id === update.toolCallId);
      const content = update.content?.flatMap((one) =>
        one.type === "content" && one.content.type === "text" ? [one.content.text] : [],
      );
      const text = `${update.status ?? ""}${content && content.length > 0 ? `: ${content.join(" ")}` : ""}`;
      if (known && update.status) known.text = text;
      else if (!known) lines.push({ kind: update.title ?? "?", id: update.toolCallId, text });
    } else if (kind === "user_message_chunk" || kind === "agent_message_chunk" || kind === "agent_thought_chunk") {
      const text = update.content.type === "text" ? update.content.text : `(${update.content.type})`;
      const last = lines.at(-1);
      if (last && last.kind === kind && last.id === update.messageId) last.text += text;
      else lines.push({ kind, id: update.messageId, text });
    }
  }
  return lines.map(
    ({ kind, text }) => `${kind.replace("_message_chunk", "").replace("agent_thought_chunk", "thought")}: ${text}`,
  );
}
