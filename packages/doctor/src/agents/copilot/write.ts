import { join } from "node:path";
import type { Transfer, WrittenSession } from "../../contract/transfer.ts";
import { lines, Making } from "../../transfer/making.ts";

/** The version whose events these are. */
const VERSION = "1.0.102";

/** Each event names the one before it. Each answer is a turn of its own, with its calls and what came of them. */
export function write(transfer: Transfer, sessions: string): WrittenSession {
  const { id, cwd, at, title, steps } = transfer;
  const making = new Making(transfer);
  const startTime = new Date(at).toISOString();
  const records: object[] = [];
  let parentId: string | null = null;
  const add = (type: string, data: object): void => {
    const own = making.uuid();
    records.push({ type, data, id: own, timestamp: making.nextTime(), parentId });
    parentId = own;
  };
  const start = { sessionId: id, version: 1, producer: "copilot-agent", copilotVersion: VERSION, startTime };
  add("session.start", { ...start, context: { cwd }, alreadyInUse: false, remoteSteerable: false });
  let interactionId = making.uuid();
  let turn = 0;
  for (const step of steps) {
    if (step.kind === "user") {
      interactionId = making.uuid();
      turn = 0;
      const content = making.textOf(step.parts);
      add("user.message", { content, transformedContent: content, attachments: [], interactionId });
      continue;
    }
    const turnId = String(turn++);
    const calls = step.parts.filter((part) => part.type === "call");
    const textOf = (type: "text" | "reasoning"): string =>
      step.parts.flatMap((part) => (part.type === type ? [part.text] : [])).join("\n");
    const reasoningText = textOf("reasoning");
    add("assistant.turn_start", { turnId, interactionId });
    add("assistant.message", {
      ...{ messageId: making.uuid(), content: textOf("text"), interactionId, turnId },
      toolRequests: calls.map(({ id: toolCallId, name, input }) => ({
        ...{ toolCallId, name, arguments: input, type: "function" },
      })),
      ...(reasoningText === "" ? {} : { reasoningText }),
    });
    for (const { id: toolCallId, name: toolName, input } of calls)
      add("tool.execution_start", { toolCallId, toolName, arguments: input, turnId });
    for (const { id: toolCallId, result } of calls) {
      const content = making.textOf(result.parts);
      const outcome = result.isError ? { error: { message: content, code: "failure" } } : { result: { content } };
      add("tool.execution_complete", { toolCallId, interactionId, turnId, success: !result.isError, ...outcome });
    }
    add("assistant.turn_end", { turnId });
  }
  const time = new Date(making.nextMs()).toISOString();
  const quoted = JSON.stringify;
  const workspace = [
    ...[`id: ${id}`, `cwd: ${quoted(cwd)}`, "client_name: github/cli"],
    ...(title === null ? [] : [`name: ${quoted(title)}`, "user_named: true"]),
    ...["summary_count: 0", `created_at: ${startTime}`, `updated_at: ${time}`],
  ];
  return {
    id,
    files: [
      {
        ...{ path: join(sessions, id, "workspace.yaml"), name: join(id, "workspace.yaml") },
        text: `${workspace.join("\n")}\n`,
      },
      { path: join(sessions, id, "events.jsonl"), name: join(id, "events.jsonl"), text: lines(records) },
    ],
    resume: [["copilot", `--resume=${id}`]],
    leftOut: making.leftOut(),
  };
}
