import type { RunnableConfig } from "@langchain/core/runnables";
import {
  BaseCheckpointSaver,
  type ChannelVersions,
  type Checkpoint,
  type CheckpointListOptions,
  type CheckpointMetadata,
  type CheckpointTuple,
  type DeltaChannelHistory,
  getCheckpointId,
  type PendingWrite,
  type SerializerProtocol,
  WRITES_IDX_MAP,
} from "@langchain/langgraph-checkpoint";
import { isHoldfastError, type Store } from "holdfast";
import { type JournalStore, type JournalStoreOptions, openJournalStore } from "holdfast/store";
import { openStores } from "../state-journal/open-stores.ts";
import { StateJournal } from "../state-journal/state-journal.ts";
import { StateJournals } from "../state-journal/state-journals.ts";
import { APP, attributesOf, sessionOf, THREAD_LABEL } from "./attributes.ts";
import { Capturer, type KnownItems } from "./capture.ts";
import { putCheckpoint, putWrites } from "./changes.ts";
import { configOf, namespaceIn, requiredThread, threadIdIn } from "./config.ts";
import { HeadReads } from "./head-reads.ts";
import { prunedRecords } from "./prune.ts";
import { Restorer } from "./restore.ts";
import { ThreadState } from "./state.ts";
import { deltaHistory, listed, matches, tupleOf } from "./tuples.ts";

export interface HoldfastSaverOptions {
  /**
   * `power` (the default): what LangGraph was told is saved survives a power cut. `process`: it survives SIGKILL; a
   * power cut can cost the last second.
   */
  readonly durability?: "power" | "process";
  /** Replaces LangGraph's serializer, for example by one that encrypts. */
  readonly serde?: SerializerProtocol;
  /** How long a thread stays reserved for this process after its last write, in milliseconds. Default 1000. */
  readonly releaseMs?: number;
}

/** A row of `listThreads`. */
export interface ThreadSummary {
  readonly threadId: string;
  /** The id of the session: `holdfast show` and the other commands take it. */
  readonly session: string;
  /** When the thread was last written to. */
  readonly at: string;
}

/** Threads of which it is known what a run has read. */
const READS_IN_MEMORY = 10_000;

/**
 * Keeps LangGraph's checkpoints in a Holdfast store: a session for each thread, written by change. Open it with
 * `HoldfastSaver.open`.
 */
export class HoldfastSaver extends BaseCheckpointSaver implements AsyncDisposable {
  readonly #store: Store;
  readonly #journals: JournalStore;
  readonly #releaseMs: number;
  readonly #known: KnownItems = new WeakMap();
  readonly #threads = new StateJournals<ThreadState>();
  readonly #reads = new Map<string, HeadReads>();

  private constructor(store: Store, journals: JournalStore, options: HoldfastSaverOptions) {
    super(options.serde);
    this.#store = store;
    this.#journals = journals;
    this.#releaseMs = options.releaseMs ?? 1000;
  }

  /**
   * Opens a store at an address, as `openStore` of the library does: a folder, `sqlite:` with a file, `postgres:` with
   * a database, or `memory:`. Throws STORE_URL_INVALID, STORE_FORBIDDEN, STORE_IO, FORMAT_NEWER.
   */
  static open(address: string, options: HoldfastSaverOptions = {}): Promise<HoldfastSaver> {
    return HoldfastSaver.openWith((given) => openJournalStore(address, given), options);
  }

  /** Like `open`, for a store that you open yourself. `open` gets options to pass on to it. */
  static async openWith(
    open: (options: JournalStoreOptions) => Promise<JournalStore>,
    options: HoldfastSaverOptions = {},
  ): Promise<HoldfastSaver> {
    const { store, journals } = await openStores(open, APP, options.durability);
    return new HoldfastSaver(store, journals, options);
  }

  async getTuple(config: RunnableConfig): Promise<CheckpointTuple | undefined> {
    const threadId = threadIdIn(config);
    if (threadId === undefined) return undefined;
    const ns = namespaceIn(config) ?? "";
    const id = getCheckpointId(config);
    const state = await this.#thread(threadId).read();
    const saved = id === "" ? state?.latest(ns) : state?.checkpoint(ns, id);
    this.#readsOf(threadId).note(ns, id, saved, state?.latest(ns));
    return state && saved ? tupleOf(threadId, state, saved, this.#restorer(state)) : undefined;
  }

  /**
   * Newest first, by id. Without a thread: the checkpoints of all threads, thread by thread. A checkpoint that damage
   * has made unreadable is left out, with a warning (`process.emitWarning`, code `HOLDFAST_UNREADABLE`). So is a thread
   * that cannot be read, unless you name it.
   */
  async *list(config: RunnableConfig, options: CheckpointListOptions = {}): AsyncGenerator<CheckpointTuple> {
    const given = threadIdIn(config);
    let left = options.limit ?? Number.POSITIVE_INFINITY;
    for await (const threadId of given === undefined ? this.#threadIds() : [given]) {
      if (left <= 0) return;
      const reading = this.#thread(threadId).read();
      const state = await (given === undefined ? reading.catch(skipUnreadable) : reading);
      if (!state) continue;
      for (const saved of listed(state, config, options)) {
        if (left <= 0) return;
        const tuple = await tupleOf(threadId, state, saved, this.#restorer(state)).catch(skipUnreadable);
        if (!tuple || !matches(tuple.metadata, options.filter)) continue;
        left--;
        yield tuple;
      }
    }
  }

  /**
   * Stores a checkpoint: what changed since its parent. Durable when it resolves. Throws SESSION_BUSY if another run
   * has continued the thread since this one read it, or another process is writing to it; and store errors.
   */
  async put(
    config: RunnableConfig,
    checkpoint: Checkpoint,
    metadata: CheckpointMetadata,
    newVersions: ChannelVersions,
  ): Promise<RunnableConfig> {
    const threadId = requiredThread(config);
    const ns = namespaceIn(config) ?? "";
    const parent: string | undefined = config.configurable?.["checkpoint_id"] || undefined;
    const reads = this.#readsOf(threadId);
    const thread = this.#thread(threadId);
    const change = putCheckpoint({
      capturer: this.#capturer,
      known: this.#known,
      ns,
      parent,
      checkpoint,
      metadata,
      newVersions,
      inMemory: thread.inMemory,
      assertCurrent: (state) => reads.assertCurrent(state, { threadId, ns, parent, id: checkpoint.id }),
    });
    await thread.write(change);
    return configOf(threadId, ns, checkpoint.id);
  }

  /** Stores what a task wrote. Durable when it resolves. Throws SESSION_BUSY, and store errors. */
  async putWrites(config: RunnableConfig, writes: PendingWrite[], taskId: string): Promise<void> {
    const threadId = requiredThread(config);
    const id = getCheckpointId(config);
    if (id === "") throw new Error('The writes were not saved: "configurable" has no "checkpoint_id".');
    const ns = namespaceIn(config) ?? "";
    const indexed = writes.map(
      ([channel, value], index) => [WRITES_IDX_MAP[channel as string] ?? index, channel as string, value] as const,
    );
    const change = putWrites({ capturer: this.#capturer, known: this.#known, ns, id, task: taskId, writes: indexed });
    await this.#thread(threadId).write(change);
  }

  /** Moves the thread to the trash of the store, from which `holdfast gc` removes it after a week. */
  async deleteThread(threadId: string): Promise<void> {
    await this.#threads.delete(threadId, this.#thread(threadId));
    this.#reads.delete(threadId);
  }

  override async getDeltaChannelHistory(options: {
    config: RunnableConfig;
    channels: string[];
  }): Promise<Record<string, DeltaChannelHistory>> {
    const { config, channels } = options;
    const threadId = threadIdIn(config);
    const state = threadId === undefined || channels.length === 0 ? null : await this.#thread(threadId).read();
    const histories: Record<string, DeltaChannelHistory> = {};
    for (const channel of channels) {
      histories[channel] = state ? await deltaHistory(state, config, channel, this.#restorer(state)) : { writes: [] };
    }
    return histories;
  }

  /** The threads of the store, the last written first, page by page. */
  async listThreads(
    options: { readonly limit?: number; readonly after?: string } = {},
  ): Promise<{ readonly threads: ThreadSummary[]; readonly next?: string }> {
    const { sessions, next } = await this.#journals.list({ where: { app: APP }, ...options });
    const threads = sessions.flatMap(({ id, at, summary }) => {
      const { labels } = (summary ?? {}) as { labels?: Readonly<Record<string, string>> };
      const threadId = labels?.[THREAD_LABEL];
      return threadId === undefined ? [] : [{ threadId, session: id, at }];
    });
    return next === undefined ? { threads } : { threads, next };
  }

  /**
   * Forgets all but the newest `keep` checkpoints of each namespace, and those they depend on. Everything before stays
   * in the older part of the journal, which `holdfast pack` compresses; `deleteThread` is for what must be gone.
   * Returns how many were forgotten; 0 if there is no such thread. Throws SESSION_BUSY, STORE_FULL, STORE_IO.
   */
  async prune(threadId: string, { keep }: { readonly keep: number }): Promise<{ readonly removed: number }> {
    if (!Number.isSafeInteger(keep) || keep < 1) throw new RangeError(`"keep" must be 1 or more, not ${keep}.`);
    const removed = await this.#thread(threadId).exclusively(async (journal, state) => {
      const pruned = prunedRecords(state, keep, attributesOf(threadId));
      if (pruned.removed > 0) await journal.epoch(() => pruned.records);
      return pruned.removed;
    });
    return { removed: removed ?? 0 };
  }

  /** Lets other processes write to the thread at once, instead of after `releaseMs`. */
  async release(threadId: string): Promise<void> {
    await this.#threads.release(threadId);
  }

  /** Waits for what is being written, releases all threads, and closes the store. */
  async close(): Promise<void> {
    await this.#threads.releaseAll();
    await this.#store.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  get #capturer(): Capturer {
    return new Capturer(this.serde, this.#known);
  }

  #restorer(state: ThreadState): Restorer {
    return new Restorer(this.serde, this.#known, state);
  }

  #thread(threadId: string): StateJournal<ThreadState> {
    return this.#threads.get(
      threadId,
      () =>
        new StateJournal({
          journals: this.#journals,
          session: sessionOf(threadId),
          app: APP,
          attributes: attributesOf(threadId),
          releaseMs: this.#releaseMs,
          empty: () => new ThreadState(),
        }),
    );
  }

  #readsOf(threadId: string): HeadReads {
    const reads = this.#reads.get(threadId) ?? new HeadReads();
    this.#reads.delete(threadId);
    this.#reads.set(threadId, reads);
    if (this.#reads.size > READS_IN_MEMORY) this.#reads.delete(this.#reads.keys().next().value!);
    return reads;
  }

  async *#threadIds(): AsyncGenerator<string> {
    let after: string | undefined;
    do {
      const page = await this.listThreads(after === undefined ? {} : { after });
      for (const { threadId } of page.threads) yield threadId;
      after = page.next;
    } while (after !== undefined);
  }
}

function skipUnreadable(error: unknown): null {
  if (!isHoldfastError(error, "JOURNAL_UNREADABLE", "FORMAT_NEWER", "PATH_UNSAFE")) throw error;
  process.emitWarning(error.message, { type: "HoldfastWarning", code: "HOLDFAST_UNREADABLE" });
  return null;
}
