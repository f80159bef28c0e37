import process from "node:process";
import { reading } from "../admit/admit.ts";
import { admitAttributes, type TextRules } from "../admit/attributes.ts";
import { invalid } from "../admit/refusals.ts";
import { defined } from "../defined.ts";
import { realPath } from "../disk/node-disk.ts";
import { type HoldfastError, isHoldfastError } from "../errors.ts";
import type { Holder, JournalStore, Recovery, Verification } from "../journal/contract.ts";
import type { JournalRecord, NewRecord } from "../journal/record.ts";
import { notSupported, storeClosed } from "../journal/refusals.ts";
import { sessionSummariser } from "../listing/fold-row.ts";
import { listSessions, trashedSession, unfinishedFirst } from "../listing/list.ts";
import type { ListQuery, Summary, TrashedSession } from "../listing/query.ts";
import { loadPart } from "../load-part.ts";
import { type Redactor, redactorOf } from "../redact/redactor.ts";
import type { SearchHit, SearchWatch } from "../search/search-index.ts";
import { openJournalStore } from "../stores/open.ts";
import type { JournalStoreOptions } from "../stores/schemes.ts";
import { oneLine } from "../text/one-line.ts";
import type { Reading } from "../view/reading.ts";
import type { Conversations, NewSession } from "./conversations.ts";
import { type Ending, endsNow, type Guarded, onClosed } from "./guarded.ts";
import { dialectUnknown, KnownDialects } from "./known-dialects.ts";
import type { Answer } from "./prompts/answer.ts";
import type { Store, StoreOptions } from "./store-surface.ts";
import type * as surface from "./surface.ts";
import { handOverMs } from "./turn/hand-over.ts";
import type { CloseOptions } from "./turn/surface.ts";
import type { ClaimOptions, ClaimResult, Finish, WorkOptions } from "./work/surface.ts";
import type { Worker } from "./work/worker.ts";

export function openStoreAt(address: string, options: StoreOptions): Promise<Store> {
  return openStoreWith((given) => openJournalStore(address, given), options);
}

/**
 * Like `openStore`, for a store that you open yourself. `open` receives the store's options (durability, list
 * summaries, application name) and returns any store that implements the contract.
 */
export async function openStoreWith(
  open: (options: JournalStoreOptions) => Promise<JournalStore>,
  options: StoreOptions = {},
): Promise<Store> {
  const dialects = new KnownDialects(options.dialects ?? []);
  const { redact, durability, app, recordsToolStarts = false } = options;
  // Anything else would be called for each text, fail, and so erase everything that is said.
  if (redact !== undefined && redact !== "credentials" && typeof redact !== "function")
    throw invalid('the option "redact" must be "credentials" or a function');
  if (durability !== undefined && durability !== "power" && durability !== "process")
    throw invalid('the option "durability" must be "power" or "process"');
  if (typeof recordsToolStarts !== "boolean") throw invalid('the option "recordsToolStarts" must be true or false');
  const redactor = redactorOf(redact);
  const journals = await open({
    summariser: sessionSummariser(dialects.find),
    ...defined({ durability, app: app || undefined }),
  });
  return new SessionStore(journals, { dialects, redactor, app: app ?? "holdfast", recordsToolStarts });
}

interface StoreParts {
  readonly dialects: KnownDialects;
  readonly redactor: Redactor | null;
  readonly app: string;
  readonly recordsToolStarts: boolean;
}

const WARNING_CHARS_MAX = 1000;

/** A store that is open for this long is not there for one list only. */
const LOAD_AFTER_MS = 100;

class SessionStore implements Store, Guarded {
  readonly #journals: JournalStore;
  readonly #parts: StoreParts;
  readonly #closed = new Set<() => void>();
  #conversations: Conversations | null = null;
  #loading: Promise<Conversations> | null = null;
  #working: Worker | null = null;
  readonly #loadsSoon: NodeJS.Timeout;
  #closing: Promise<void> | null = null;

  constructor(journals: JournalStore, parts: StoreParts) {
    this.#journals = journals;
    this.#parts = parts;
    // Later, an upgrade may have replaced its file. If this fails, the call that needs it says so.
    this.#loadsSoon = setTimeout(() => void this.#load().catch(() => {}), LOAD_AFTER_MS);
    this.#loadsSoon.unref();
  }

  get url(): string {
    return this.#journals.url;
  }
  get warnings(): readonly string[] {
    return this.#journals.warnings;
  }

  /** Half of the library: lists do without it. Throws STORE_IO (then the next call tries again), LIBRARY_REPLACED. */
  #load(): Promise<Conversations> {
    this.#loading ??= this.#loadNow().catch((error) => {
      this.#loading = null;
      throw error;
    });
    return this.#loading;
  }

  async #loadNow(): Promise<Conversations> {
    const { Conversations } = await loadPart(() => import("./conversations.ts"));
    const assertOpen = (): void => this.#assertOpen();
    this.#conversations = new Conversations(this.#journals, { ...this.#parts, assertOpen });
    return this.#conversations;
  }

  async create<M>(options: surface.CreateOptions<M>): Promise<surface.Session<M>> {
    this.#assertOpen();
    const given = reading("options", () => ({ ...options }));
    const beginning = this.#beginning(given);
    return (await this.#load()).create(beginning, given);
  }

  #beginning<M>(given: surface.CreateOptions<M>): NewSession<M> {
    const { dialects, app } = this.#parts;
    const dialect = dialects.named(given.dialect);
    if (!dialect) throw dialectUnknown(given.dialect);
    dialects.remember(dialect);
    const attributes = admitAttributes({ app, ...given }, this.#cleaning);
    const first = [{ kind: "session", dialect: dialect.name, ...attributes } as unknown as NewRecord];
    return { dialect, first, id: given.id };
  }

  async record<M>(
    target: string | surface.CreateOptions<M>,
    options: surface.RecordOptions<M> = {},
  ): Promise<surface.Recorder<M>> {
    this.#assertOpen();
    const given = reading("options", () => ({ ...options }));
    if (typeof target === "string") return (await this.#load()).record(target, given);
    const wanted = reading("options", () => ({ ...target }));
    const beginning = this.#beginning(wanted);
    return (await this.#load()).record(beginning, { ...given, ...defined({ app: wanted.app }) });
  }

  async resume<M>(id: string, options: surface.OpenOptions<M> = {}): Promise<surface.Session<M>> {
    this.#assertOpen();
    const given = reading("options", () => ({ ...options }));
    return (await this.#load()).resume(id, given);
  }

  async resumeLatest<M>(
    query: { readonly cwd?: string; readonly app?: string } = {},
    options: surface.LatestOptions<M> = {},
  ): Promise<surface.Session<M> | null> {
    this.#assertOpen();
    const { onPassedOver = warnOf, ...opening } = reading("options", () => ({ ...options }));
    const passedOver: { readonly id: string; readonly error: HoldfastError }[] = [];
    for await (const id of unfinishedFirst(this.#journals, query, realPath)) {
      let session: surface.Session<M>;
      try {
        session = await this.resume<M>(id, opening);
      } catch (error) {
        // Taken or deleted since the list was read: try the next one.
        if (isHoldfastError(error, "SESSION_BUSY", "SESSION_NOT_FOUND")) continue;
        if (!isOfOneSession(error)) throw error;
        passedOver.push({ id, error });
        continue;
      }
      for (const one of passedOver) onPassedOver(one.id, one.error);
      return session;
    }
    // Returning null would make the caller start over although a session exists.
    if (passedOver[0]) throw passedOver[0].error;
    return null;
  }

  // biome-ignore lint/suspicious/noExplicitAny: the type of the messages is the application's to say.
  live(id: string): surface.Session<any> | null {
    return this.#conversations?.live(id) ?? null;
  }

  async claimNext<M>(options: ClaimOptions<M>, finish: Finish<M>): Promise<ClaimResult | null> {
    return (await this.#worker()).claimNext(options, finish);
  }

  async work<M>(options: WorkOptions<M>, finish: Finish<M>): Promise<void> {
    return (await this.#worker()).work(options, finish);
  }

  async nextDue<M>(options: ClaimOptions<M> = {}): Promise<Date | null> {
    const dueMs = await (await this.#worker()).nextDue(options);
    return dueMs === null ? null : new Date(dueMs);
  }

  async retry(id: string, options: surface.OpenOptions<unknown> = {}): Promise<boolean> {
    const session = await this.resume(id, options);
    // Not `await using`: older Nodes cannot parse it, and are to say what they lack.
    return session.retryTurn().finally(() => session.close());
  }

  /** Also half of the library. */
  async #worker(): Promise<Worker> {
    this.#assertOpen();
    const conversations = await this.#load();
    const { Worker } = await loadPart(() => import("./work/worker.ts"));
    this.#assertOpen();
    this.#working ??= new Worker({
      journals: this.#journals,
      resume: (id, options) => {
        this.#assertOpen();
        return conversations.resume(id, options);
      },
      isLive: (id) => conversations.live(id) !== null,
      realPath,
      onPassedOver: (id, { code, message }) => warn(`Session ${id} was passed over by a worker: `, message, code),
    });
    return this.#working;
  }

  async read<M>(id: string, options: surface.ReadOptions<M> = {}): Promise<Reading<M>> {
    this.#assertOpen();
    const given = reading("options", () => ({ ...options }));
    this.#parts.dialects.named(given.dialect);
    return (await this.#load()).read(id, given);
  }

  async once(id: string, key: string, content: string): Promise<Omit<surface.Once, "repeated"> | null> {
    this.#assertOpen();
    return (await this.#load()).once(id, key, content);
  }

  list(query: ListQuery = {}): Promise<{ readonly sessions: Summary[]; readonly next?: string }> {
    return listSessions(this.#journals, query, realPath);
  }

  async *search(
    text: string,
    query: ListQuery = {},
    options: SearchWatch = {},
  ): AsyncGenerator<SearchHit, void, undefined> {
    this.#assertOpen();
    const { limit, after: _after, ...filter } = query;
    const isFiltered = Object.keys(filter).some((name) => name !== "empty");
    const wanted = isFiltered ? await this.#ids(filter) : null;
    const conversations = await this.#load();
    let count = 0;
    for await (const hit of conversations.search(text, (id) => wanted?.has(id) ?? true, options)) {
      if (limit !== undefined && count++ >= limit) return;
      yield hit;
    }
  }

  has(id: string): Promise<boolean> {
    return this.#journals.has(id);
  }

  holder(id: string): Promise<Holder | null> {
    return this.#journals.holder(id);
  }

  follow(
    id: string,
    after?: number | string,
    options: { readonly signal?: AbortSignal } = {},
  ): AsyncIterable<JournalRecord> {
    return this.#journals.follow(id, { ...options, ...defined({ after }) });
  }

  async answer<M>(
    id: string,
    key: string,
    options: Pick<surface.ReadOptions<M>, "dialect"> & { readonly signal?: AbortSignal } = {},
  ): Promise<Answer<M> | null> {
    this.#assertOpen();
    const given = reading("options", () => ({ ...options }));
    this.#parts.dialects.named(given.dialect);
    return (await this.#load()).answer(id, key, given);
  }

  async fork<M>(id: string, options: surface.ForkOptions<M> = {}): Promise<surface.Session<M>> {
    this.#assertOpen();
    const given = reading("options", () => ({ ...options }));
    this.#parts.dialects.named(given.dialect);
    const { title, cwd, labels } = admitAttributes(
      defined({ title: given.title, cwd: given.cwd, labels: given.labels }) as Partial<typeof given>,
      this.#cleaning,
    );
    const changed = defined({ at: given.at, title, cwd, labels });
    return (await this.#load()).fork(id, changed, given);
  }

  delete(id: string): Promise<void> {
    return this.#journals.delete(id);
  }

  async trashed(): Promise<TrashedSession[]> {
    this.#assertOpen();
    if (!this.#journals.trashed) throw cannotRestore(this.url);
    return (await this.#journals.trashed()).map(trashedSession);
  }

  async restore(id: string): Promise<void> {
    this.#assertOpen();
    if (!this.#journals.restore) throw cannotRestore(this.url);
    await this.#journals.restore(id);
  }

  verify(id: string): Promise<Verification> {
    return this.#journals.verify(id);
  }

  async heal(id: string): Promise<Recovery> {
    this.#assertOpen();
    const { journal, recovery } = await this.#journals.open(id, { app: this.#parts.app });
    await journal.close();
    return recovery;
  }

  history(id: string, from?: number): AsyncIterable<JournalRecord> {
    return this.#journals.history(id, from);
  }

  pack(id: string): Promise<{ readonly segments: number; readonly bytesBefore: number; readonly bytesAfter: number }> {
    return this.#journals.pack(id);
  }

  gc(options?: { readonly graceMs?: number }): Promise<{ readonly removed: readonly string[] }> {
    return this.#journals.gc(options);
  }

  close(options: CloseOptions = {}): Promise<void> {
    if (this.#closing) return this.#closing;
    try {
      handOverMs(options);
    } catch (error) {
      return Promise.reject(error);
    }
    this.#closing = this.#close({ ...options });
    return this.#closing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  [endsNow](ending: Ending): void | Promise<void> {
    return this.#conversations?.[endsNow](ending);
  }

  [onClosed](listener: () => void): () => void {
    this.#closed.add(listener);
    return () => this.#closed.delete(listener);
  }

  async #close(options: CloseOptions): Promise<void> {
    clearTimeout(this.#loadsSoon);
    try {
      // From this instant on a turn that is handed over begins nothing.
      const closing = this.#conversations?.close(options);
      await (closing ??
        this.#loading?.then(
          (conversations) => conversations.close(options),
          () => {},
        ));
    } finally {
      try {
        await this.#journals.close();
      } finally {
        for (const listener of [...this.#closed]) listener();
      }
    }
  }

  async #ids(filter: ListQuery): Promise<Set<string>> {
    const ids = new Set<string>();
    let after: string | undefined;
    do {
      const page = await this.list({ ...filter, limit: 1000, ...defined({ after }) });
      for (const { id } of page.sessions) ids.add(id);
      after = page.next;
    } while (after !== undefined);
    return ids;
  }

  readonly #cleaning: TextRules = { text: (text) => this.#parts.redactor?.(text) ?? text, path: realPath };

  #assertOpen(): void {
    if (this.#closing) throw storeClosed(this.url);
  }
}

function cannotRestore(url: string): HoldfastError {
  return notSupported("restore", url, "Its trash cannot be read through Holdfast.");
}

/** Whether the error concerns the one session being opened, not the store. */
function isOfOneSession(error: unknown): error is HoldfastError {
  return isHoldfastError(
    error,
    "DIALECT_UNKNOWN",
    "FORMAT_NEWER",
    "JOURNAL_UNREADABLE",
    "PATH_UNSAFE",
    "STORE_FORBIDDEN",
    "STORE_IO",
  );
}

function warnOf(id: string, { code, message }: HoldfastError): void {
  warn(`Session ${id} was skipped, and an older one opened: `, message, code);
}

function warn(what: string, message: string, code: string): void {
  // Node prints it unescaped, and the message may quote an untrusted journal.
  process.emitWarning(what + oneLine(message, WARNING_CHARS_MAX), { code });
}
