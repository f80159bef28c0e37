import type { ModelMessage } from "ai";
import type { Session, Turn } from "holdfast";
import { errorOutput, modelOutput, ownTool } from "../content.ts";
import { shownAs } from "../tools.ts";
import { checkedOutput, type PageAnswer } from "./browser-message.ts";
import type { ChatSettings } from "./surface.ts";
import type { Waits } from "./waits.ts";

/** The name is the page's word, and decides which schema an output must fit: it must be that of the call. */
export function isAwaited({ kind, id, toolName }: PageAnswer, { approvals, outputs }: Waits): boolean {
  return kind === "approval" ? approvals.has(id) : outputs.get(id)?.name === toolName;
}

/** Records a page's answer, once. */
export async function recordAnswer(
  session: Session<ModelMessage>,
  turn: Turn<ModelMessage>,
  { kind, id, toolName, answer, content }: PageAnswer,
  key: string,
  { approvals, outputs }: Waits,
  { tools }: ChatSettings,
): Promise<void> {
  if (kind === "approval") {
    const response = {
      type: "tool-approval-response" as const,
      approvalId: id,
      ...(answer as { readonly approved: boolean; readonly reason?: string }),
      ...(approvals.get(id)?.state === "provider" ? { providerExecuted: true } : {}),
    };
    await session.once(key, content, () => turn.append({ role: "tool", content: [response] }));
    return;
  }
  const { input, startedAt } = outputs.get(id)!;
  // Only a process that was killed at the wrong moment left it out.
  if (startedAt === undefined) await turn.toolStarted(id);
  const outcome =
    "value" in answer
      ? { value: await checkedOutput(tools, toolName, answer.value) }
      : { error: (answer as { readonly error: string }).error };
  const output =
    "value" in outcome
      ? await modelOutput(ownTool(tools, toolName), id, input, outcome.value)
      : errorOutput(outcome.error);
  const shown = shownAs(id, toolName, outcome as never, output, null);
  await session.once(key, content, () =>
    shown ? turn.toolEnded(id, outcome as never, shown) : turn.toolEnded(id, outcome as never),
  );
}

/** Calls that wait for an approval are named; those of the page are known by their start. */
export function suspension({ approvals }: Waits): { reason: string; calls?: string[] } {
  if (approvals.size === 0) return { reason: "result" };
  return { reason: "approval", calls: [...approvals.values()].map(({ id }) => id) };
}
