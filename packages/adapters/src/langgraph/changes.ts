import type { ChannelVersions, Checkpoint, CheckpointMetadata } from "@langchain/langgraph-checkpoint";
import { HoldfastError } from "holdfast";
import type { Change } from "../state-journal/state-journal.ts";
import type { Capturer, KnownItems } from "./capture.ts";
import type { CheckpointRecord, StoredValue, WritesRecord } from "./records.ts";
import { type SerializedValue, settle } from "./settle.ts";
import { slotOf, type ThreadState } from "./state.ts";
import { ValueWriter } from "./store-value.ts";
import { outcomeRecords, transcriptRecords } from "./transcript.ts";

interface CaptureParts {
  readonly capturer: Capturer;
  readonly known: KnownItems;
  readonly ns: string;
}

interface PutParts extends CaptureParts {
  readonly parent: string | undefined;
  readonly checkpoint: Checkpoint;
  readonly metadata: CheckpointMetadata;
  readonly newVersions: ChannelVersions;
  /** The state as far as it is in memory. */
  readonly inMemory: ThreadState | null;
  /** Throws if the checkpoint may not be stored in this state. */
  readonly assertCurrent: (state: ThreadState) => void;
}

/** Stores a checkpoint: the values that changed, and for the others that they are the parent's. */
export function putCheckpoint(put: PutParts): Change<ThreadState> {
  const { capturer, known, ns, parent, checkpoint, metadata, newVersions, inMemory } = put;
  const { channel_values: values, channel_versions, id, ...rest } = checkpoint;
  const versions = { ...channel_versions };
  const isParents = (state: ThreadState | null, channel: string): boolean => {
    const before = parent === undefined ? undefined : state?.checkpoint(ns, parent);
    return before !== undefined && before.versions[channel] === versions[channel] && before.values.has(channel);
  };
  const isChanged = (channel: string): boolean => Object.hasOwn(newVersions, channel);
  const inherited = Object.keys(values).filter((channel) => !isChanged(channel) && isParents(inMemory, channel));
  const taken = Object.keys(values).filter((channel) => !inherited.includes(channel));
  const capturedRest = capturer.leaf(rest).leaf;
  const capturedMetadata = capturer.leaf(metadata).leaf;
  const captured = taken.map((channel) => [channel, capturer.capture(values[channel])] as const);
  const delta = Object.keys(metadata.counters_since_delta_snapshot ?? {});
  let settled: readonly [rest: StoredValue, metadata: StoredValue, values: (readonly [string, SerializedValue])[]];

  const plan = (state: ThreadState): ReturnType<Change<ThreadState>["plan"]> => {
    put.assertCurrent(state);
    const missing = inherited.find((channel) => !isParents(state, channel));
    if (missing !== undefined) throw parentChanged(missing, id);
    const same = [...inherited];
    const writer = new ValueWriter(state, known);
    const stored: [string, StoredValue][] = [];
    for (const [channel, value] of settled[2]) {
      if (!isChanged(channel) && isParents(state, channel)) same.push(channel);
      // A copy of another checkpoint has its versions, and not always its parent.
      else if (isChanged(channel) || parent !== undefined || state.hasVersion(ns, channel, versions[channel]))
        stored.push([channel, writer.store(value, (path) => slotOf(ns, channel, path))]);
    }
    const record: CheckpointRecord = {
      kind: "graph.checkpoint",
      ns,
      id,
      ...(parent === undefined ? {} : { parent }),
      checkpoint: settled[0],
      metadata: settled[1],
      versions,
      values: Object.fromEntries(stored),
      ...(same.length > 0 ? { same } : {}),
      ...(delta.length > 0 ? { delta } : {}),
    };
    state.add(record);
    return [...writer.records, record, ...(ns === "" ? transcriptRecords(state, id) : [])];
  };
  const ready = (async () => {
    const settling = captured.map(async ([channel, value]) => [channel, await settle(value)] as const);
    settled = [await capturedRest, await capturedMetadata, await Promise.all(settling)];
  })();
  return { ready, plan };
}

interface PutWrites extends CaptureParts {
  readonly id: string;
  readonly task: string;
  readonly writes: readonly (readonly [index: number, channel: string, value: unknown])[];
}

/** Stores what a task wrote. */
export function putWrites({ capturer, known, ns, id, task, writes }: PutWrites): Change<ThreadState> {
  const captured = writes.map(([index, channel, value]) => [index, channel, capturer.capture(value)] as const);
  let settled: (readonly [number, string, SerializedValue])[];
  const ready = (async () => {
    settled = await Promise.all(
      captured.map(async ([index, channel, value]) => [index, channel, await settle(value)] as const),
    );
  })();
  const plan = (state: ThreadState): ReturnType<Change<ThreadState>["plan"]> => {
    const writer = new ValueWriter(state, known);
    const stored = settled.map(([index, channel, value]) => [index, channel, writer.store(value, null)] as const);
    const record: WritesRecord = { kind: "graph.writes", ns, id, task, writes: stored };
    state.add(record);
    return [...writer.records, record, ...(ns === "" ? outcomeRecords(state, id) : [])];
  };
  return { ready, plan };
}

function parentChanged(channel: string, checkpoint: string): HoldfastError {
  const message = `The checkpoint was not saved: the value of "${channel}" in its parent was removed or replaced since this run read it. What is stored is safe. Read the thread again, and run it from there.`;
  return new HoldfastError("SESSION_BUSY", message, { channel, checkpoint });
}
