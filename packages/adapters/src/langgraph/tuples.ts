import { isDeepStrictEqual } from "node:util";
import type { RunnableConfig } from "@langchain/core/runnables";
import {
  type Checkpoint,
  type CheckpointListOptions,
  type CheckpointMetadata,
  type CheckpointPendingWrite,
  type CheckpointTuple,
  type DeltaChannelHistory,
  getCheckpointId,
  maxChannelVersion,
  TASKS,
} from "@langchain/langgraph-checkpoint";
import { configOf, namespaceIn } from "./config.ts";
import { lost, type Restorer } from "./restore.ts";
import type { SavedCheckpoint, SavedWrite, ThreadState } from "./state.ts";

/** What LangGraph gets of a checkpoint. Throws JOURNAL_UNREADABLE if a part of it is lost. */
export async function tupleOf(
  threadId: string,
  state: ThreadState,
  saved: SavedCheckpoint,
  restorer: Restorer,
): Promise<CheckpointTuple> {
  const { ns, id, parent, values, broken } = saved;
  if (broken !== undefined) throw lost(`the channel "${broken}"`, { thread: threadId, checkpoint: id });
  const writes = state.writes(ns, id);
  const sends = parent === undefined ? [] : state.writes(ns, parent).filter(({ channel }) => channel === TASKS);
  const [rest, metadata, ...channels] = await Promise.all([
    restorer.restore(saved.checkpoint),
    restorer.restore(saved.metadata),
    ...[...values].map(async ([channel, value]) => [channel, await restorer.restore(value)] as const),
  ]);
  const checkpoint: Checkpoint = {
    ...(rest as Omit<Checkpoint, "id" | "channel_values" | "channel_versions">),
    id,
    channel_versions: { ...saved.versions },
    channel_values: Object.fromEntries(channels),
  };
  if (checkpoint.v < 4 && parent !== undefined) {
    const versions = Object.values(checkpoint.channel_versions);
    checkpoint.channel_values[TASKS] = await Promise.all(sends.map(({ value }) => restorer.restore(value)));
    checkpoint.channel_versions[TASKS] = versions.length > 0 ? maxChannelVersion(...versions) : 1;
  }
  return {
    config: configOf(threadId, ns, id),
    checkpoint,
    metadata: metadata as CheckpointMetadata,
    pendingWrites: await Promise.all(writes.map((write) => pendingWrite(write, restorer))),
    ...(parent === undefined ? {} : { parentConfig: configOf(threadId, ns, parent) }),
  };
}

async function pendingWrite({ task, channel, value }: SavedWrite, restorer: Restorer): Promise<CheckpointPendingWrite> {
  return [task, channel, await restorer.restore(value)];
}

/** The checkpoints that a list is about, the greatest id first. */
export function listed(
  state: ThreadState,
  config: RunnableConfig,
  { before }: CheckpointListOptions,
): readonly SavedCheckpoint[] {
  const ns = namespaceIn(config);
  const id = getCheckpointId(config);
  const end: string | undefined = before?.configurable?.["checkpoint_id"];
  const found = (ns === undefined ? state.namespaces() : [ns]).flatMap((name) => state.checkpoints(name));
  return found
    .filter((saved) => (id === "" || saved.id === id) && (end === undefined || saved.id < end))
    .sort((a, b) => (a.id < b.id ? 1 : a.id > b.id ? -1 : 0));
}

export function matches(metadata: CheckpointMetadata | undefined, filter: Record<string, unknown> = {}): boolean {
  const found = (metadata ?? {}) as Record<string, unknown>;
  return Object.entries(filter).every(([name, value]) => value === undefined || isDeepStrictEqual(found[name], value));
}

/** The last value of a delta channel that an ancestor has, and the writes since, in the order of their tasks. */
export async function deltaHistory(
  state: ThreadState,
  config: RunnableConfig,
  channel: string,
  restorer: Restorer,
): Promise<DeltaChannelHistory> {
  const ns = namespaceIn(config) ?? "";
  const id = getCheckpointId(config);
  const ancestor = (of: SavedCheckpoint | undefined): SavedCheckpoint | undefined =>
    of?.parent === undefined ? undefined : state.checkpoint(ns, of.parent);
  const steps: SavedWrite[][] = [];
  let saved = ancestor(id === "" ? state.latest(ns) : state.checkpoint(ns, id));
  for (; saved; saved = ancestor(saved)) {
    steps.push(
      state
        .writes(ns, saved.id)
        .filter((write) => write.channel === channel)
        .sort(byTask),
    );
    if (saved.values.has(channel)) break;
  }
  const seed = saved?.values.get(channel);
  const writes = await Promise.all(
    steps
      .reverse()
      .flat()
      .map((write) => pendingWrite(write, restorer)),
  );
  return seed === undefined ? { writes } : { writes, seed: await restorer.restore(seed) };
}

function byTask(a: SavedWrite, b: SavedWrite): number {
  if (a.task !== b.task) return a.task < b.task ? -1 : 1;
  return a.index - b.index;
}
