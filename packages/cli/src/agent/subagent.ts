import { type ModelMessage, type ToolSet, tool } from "ai";
import type { OpenCall, Session, Store, ToolProcess } from "holdfast";
import { z } from "zod";
import type { ResolvedModel } from "../models/resolve.ts";
import { readable } from "../store/usage.ts";
import { callWords } from "../transcript/words.ts";
import type { Trust } from "../trust/trust.ts";
import { work } from "./loop.ts";
import { resume } from "./open-calls.ts";
import { Equipment, type Told } from "./runtime.ts";
import { APP, type Services } from "./services.ts";

/** The tool's name, as the model knows it. */
export const DELEGATE = "task";

const SILENT: Told = {
  started: () => {},
  ended: () => {},
  output: () => {},
  delegated: () => {},
  startedBelow: () => {},
  usedBelow: () => {},
  denied: () => {},
  show: () => {},
  retrying: () => {},
  compacting: () => {},
  compacted: () => {},
  cutOff: () => {},
  used: () => {},
};

/** Hands a part of the work to an agent with a session of its own, which is linked to the call. The parent's conversation gets only its answer. */
export function subAgentTool(
  services: Services,
  parent: Equipment,
  model: ResolvedModel,
  told: Pick<Told, "denied" | "delegated" | "startedBelow" | "usedBelow">,
): ToolSet[string] {
  return tool({
    description:
      "Hands a part of the task to another agent, which works in the same folder with the same tools and the same permissions, and answers once. It knows nothing of this conversation: say all that it needs. It cannot ask the user.",
    inputSchema: z.object({ prompt: z.string().min(1).describe("The whole task, with all that it needs to know.") }),
    execute: ({ prompt }, { toolCallId: call, abortSignal }) =>
      delegate(services, parent, model, { call, prompt, told, signal: abortSignal }),
  });
}

/** The session of the sub-agent that was begun for a call; null if there is none. `message`: the one that makes the call, since some servers repeat their ids (R9). */
async function findChild(store: Store, parent: string, call: string, message?: string): Promise<string | null> {
  let after: string | undefined;
  do {
    const page = await store.list({
      parent,
      empty: true,
      ...(message === undefined ? {} : { labels: { message } }),
      ...(after === undefined ? {} : { after }),
    });
    const found = page.sessions.find((session) => session.parent?.call === call);
    if (found) return found.id;
    after = page.next;
  } while (after !== undefined);
  return null;
}

/** Processes of the sub-agent that was begun for a call, and of those below it, which may have outlived them all (R7b). Only those that this user's agents started. */
export async function processesBelow(
  store: Store,
  trust: Trust,
  parent: string,
  { id, name, message }: OpenCall,
): Promise<ToolProcess[]> {
  const child = name === DELEGATE ? await findChild(store, parent, id, message ?? undefined) : null;
  if (child === null) return [];
  // One that cannot be read will say so when it is taken up.
  const reading = await readable(store.read(child));
  const found: ToolProcess[] = [];
  for (const call of reading?.interruption?.calls ?? []) {
    if (call.process && trust.of(child).hasStarted(call.process)) found.push(call.process);
    found.push(...(await processesBelow(store, trust, child, call)));
  }
  return found;
}

interface Delegated {
  readonly call: string;
  readonly prompt: string;
  readonly told: Pick<Told, "denied" | "delegated" | "startedBelow" | "usedBelow">;
  readonly signal: AbortSignal | undefined;
}

/** Taken up where it was left if it was begun before: so it can be run again without harm. */
async function delegate(
  services: Services,
  parent: Equipment,
  model: ResolvedModel,
  delegated: Delegated,
): Promise<string> {
  const session = await childOf(services.store, parent, delegated.call);
  delegated.told.delegated(delegated.call, session.id);
  // Not `await using`: if the store fails, that is what the caller must see, as it is.
  try {
    return await workIn(session, services, parent, model, delegated);
  } finally {
    await session.close();
  }
}

async function workIn(
  session: Session<ModelMessage>,
  services: Services,
  parent: Equipment,
  model: ResolvedModel,
  { call, prompt, told, signal }: Delegated,
): Promise<string> {
  const { interruption } = session;
  if (interruption?.answered) await session.endTurn();
  if (!session.interruption && session.entries.length > 0) return answerIn(session);
  const denied: Told["denied"] = (denied, decision) => told.denied(denied, decision, true);
  const started: Told["started"] = (_, name, input) => told.startedBelow(call, callWords({ name, input }));
  const used = (): void => told.usedBelow(session.id, session.usage);
  const equipment = new Equipment(session, services, { ...SILENT, started, denied, used }, parent);
  if (interruption && !(await equipment.outlived(interruption.calls, { signal }))) throw stopped();
  const turn = interruption
    ? await resume(session, await equipment.know(interruption.calls))
    : await session.startTurn({ role: "user", content: prompt });
  // When the process is told to end, the turn stays open: whoever finishes the parent's takes it up.
  const stop = (): void => {
    if (!services.ending.aborted) turn.abort({ by: BY }).catch((error: Error) => process.emitWarning(error));
  };
  if (signal?.aborted) stop();
  signal?.addEventListener("abort", stop, { once: true });
  try {
    const worked = await work(await equipment.work(turn, model));
    if (services.ending.aborted) await new Promise<never>(() => {});
    switch (worked.kind) {
      case "completed":
        await turn.end();
        return answerIn(session);
      case "failed":
        await turn.fail(worked.error);
        throw worked.error;
      case "limit":
        await turn.fail(new Error(`It was not done after ${worked.steps} steps.`));
        throw new Error(
          `The sub-agent was not done after ${worked.steps} steps. What it did stands in the session ${session.id}.`,
        );
      default:
        await turn.abort({ by: BY });
        throw stopped();
    }
  } finally {
    signal?.removeEventListener("abort", stop);
  }
}

const BY = "the agent that asked for it";

function stopped(): Error {
  return new Error("The sub-agent was stopped.");
}

async function childOf(
  store: Store,
  { session: parent, cwd }: Equipment,
  call: string,
): Promise<Session<ModelMessage>> {
  const message = parent.entries.findLast((entry) => makes(entry.message, call))?.id;
  const found = await findChild(store, parent.id, call, message);
  if (found) return store.resume<ModelMessage>(found, { app: APP, intents: true });
  return store.create<ModelMessage>({
    dialect: "ai-sdk",
    app: APP,
    intents: true,
    parent: { session: parent.id, call },
    ...(message === undefined ? {} : { labels: { message } }),
    cwd,
  });
}

function makes({ role, content }: ModelMessage, call: string): boolean {
  return (
    role === "assistant" &&
    typeof content !== "string" &&
    content.some((part) => part.type === "tool-call" && part.toolCallId === call)
  );
}

/** What the sub-agent said last. */
function answerIn(session: Session<ModelMessage>): string {
  const last = session.messages.findLast(({ role }) => role === "assistant");
  if (!last) return "(The sub-agent said nothing.)";
  if (typeof last.content === "string") return last.content;
  const texts = last.content.map((part) => (part.type === "text" ? part.text : ""));
  return texts.join("") || "(The sub-agent said nothing.)";
}
