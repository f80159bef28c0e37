import { hostname } from "node:os";
import process from "node:process";
import { Admission, reading } from "../admit/admit.ts";
import { admitAttributes, type Cleaning } from "../admit/attributes.ts";
import { Conversation } from "../conversation/conversation.ts";
import { defined } from "../defined.ts";
import type { Dialect } from "../dialects/dialect.ts";
import { type DialectName, findDialect } from "../dialects/index.ts";
import { realPath } from "../disk/node-disk.ts";
import { type HoldfastError, isHoldfastError } from "../errors.ts";
import type { Holder, Journal, JournalStore, Recovery, Verification } from "../journal/contract.ts";
import { newId } from "../journal/id.ts";
import { cursorOf, type JournalRecord, type NewRecord } from "../journal/record.ts";
import { notSupported, storeClosed } from "../journal/refusals.ts";
import { sessionSummariser } from "../listing/fold-row.ts";
import { listSessions, trashedSession, unfinishedFirst } from "../listing/list.ts";
import { type Redactor, redactorOf } from "../redact/redactor.ts";
import { forkRecords } from "../replace/fork.ts";
import { SearchIndex, type SearchWatch } from "../search/search-index.ts";
import { type JournalStoreOptions, openJournalStore } from "../stores/open.ts";
import { readingOf } from "../view/reading.ts";
import { dialectUnknown, otherDialect } from "./dialect-refusals.ts";
import { type Ending, endsNow, type Guarded, onClosed } from "./guarded.ts";
import { digestOf, OnceKeys } from "./once.ts";
import { LiveRecorder } from "./recorder.ts";
import { LiveSession } from "./session.ts";
import { isOfOneSession, warnOf } from "./skipped.ts";
import type * as surface from "./surface.ts";

export function openStoreAt(address: string, options: surface.StoreOptions): Promise<surface.Store> {
  return openStoreWith((given) => openJournalStore(address, given), options);
}

/**
 * Like `openStore`, for a store that you open yourself. `open` receives the store's options (durability, list
 * summaries, application name) and returns any store that implements the contract.
 */
export async function openStoreWith(
  open: (options: JournalStoreOptions) => Promise<JournalStore>,
  options: surface.StoreOptions = {},
): Promise<surface.Store> {
  const own = new Map((options.dialects ?? []).map((dialect) => [dialect.name, dialect]));
  // biome-ignore lint/suspicious/noExplicitAny: the type of the messages is the application's to say.
  const lookup = (name: string): Dialect<any> | null => own.get(name) ?? findDialect(name);
  const redactor = redactorOf(options.redact);
  const { durability, app } = options;
  const journals = await open({
    summariser: sessionSummariser(lookup),
    ...(durability ? { durability } : {}),
    ...(app ? { app } : {}),
  });
  const recordsToolStarts = options.recordsToolStarts === true;
  return new SessionStore(journals, { own, lookup, redactor, app: app ?? "holdfast", recordsToolStarts });
}

interface StoreParts {
  // biome-ignore lint/suspicious/noExplicitAny: the type of the messages is the application's to say.
  readonly own: Map<string, Dialect<any>>;
  // biome-ignore lint/suspicious/noExplicitAny: the type of the messages is the application's to say.
  readonly lookup: (name: string) => Dialect<any> | null;
  readonly redactor: Redactor | null;
  readonly app: string;
  readonly recordsToolStarts: boolean;
}

const FOUND_CLEAN: Recovery = { unclean: false, cutBytes: 0, damaged: [], missing: [] };

class SessionStore implements surface.Store, Guarded {
  readonly #journals: JournalStore;
  readonly #parts: StoreParts;
  readonly #search: SearchIndex;
  // biome-ignore lint/suspicious/noExplicitAny: the type of the messages is the application's to say.
  readonly #live = new Map<string, LiveSession<any>>();
  // biome-ignore lint/suspicious/noExplicitAny: the type of the messages is the application's to say.
  readonly #recorders = new Set<LiveRecorder<any>>();
  readonly #closed = new Set<() => void>();
  #closing: Promise<void> | null = null;

  constructor(journals: JournalStore, parts: StoreParts) {
    this.#journals = journals;
    this.#parts = parts;
    this.#search = new SearchIndex(journals, { dialectNamed: parts.lookup });
  }

  get url(): string {
    return this.#journals.url;
  }
  get warnings(): readonly string[] {
    return this.#journals.warnings;
  }

  async create<M>(options: surface.CreateOptions<M>): Promise<surface.Session<M>> {
    this.#assertOpen();
    const given = reading("options", () => ({ ...options }));
    const { dialect, first } = this.#firstRecord(given);
    return this.#begin(dialect, first, given, given.id);
  }

  #firstRecord<M>(given: surface.CreateOptions<M>): { readonly dialect: Dialect<M>; readonly first: NewRecord[] } {
    const dialect = this.#dialectOf(given.dialect);
    if (!dialect) throw dialectUnknown(given.dialect);
    this.#remember(dialect);
    const attributes = admitAttributes({ app: this.#parts.app, ...given }, this.#cleaning);
    return { dialect, first: [{ kind: "session", dialect: dialect.name, ...attributes } as unknown as NewRecord] };
  }

  async record<M>(
    target: string | surface.CreateOptions<M>,
    options: surface.RecordOptions<M> = {},
  ): Promise<surface.Recorder<M>> {
    this.#assertOpen();
    const given = reading("options", () => ({ ...options }));
    const { journal, conversation } =
      typeof target === "string"
        ? await this.#openJournal(target, given)
        : await this.#createFor(reading("options", () => ({ ...target })));
    const { id } = journal;
    const recorder: LiveRecorder<M> = new LiveRecorder<M>({
      journal,
      conversation,
      admission: new Admission(conversation.dialect, this.#parts.redactor),
      read: async (isActive) => {
        const { records, recovery } = await this.#journals.read(id);
        const holder = isActive ? holderHere(given.app ?? this.#parts.app) : null;
        return readingOf(id, this.#fold(records, conversation.dialect), { recovery, holder });
      },
      onTurnEnd: () => this.#search.note(id),
      onClose: () => this.#recorders.delete(recorder),
    });
    this.#recorders.add(recorder);
    return recorder;
  }

  #createFor<M>(
    given: surface.CreateOptions<M>,
  ): Promise<{ readonly journal: Journal; readonly conversation: Conversation<M> }> {
    const { dialect, first } = this.#firstRecord(given);
    return this.#createJournal(dialect, first, given, given.id);
  }

  async resume<M>(id: string, options: surface.OpenOptions<M> = {}): Promise<surface.Session<M>> {
    this.#assertOpen();
    const given = reading("options", () => ({ ...options }));
    const { journal, conversation, once, recovery, opened } = await this.#openJournal(id, given);
    return this.#join(journal, conversation, recovery, opened, given, once);
  }

  async #openJournal<M>(id: string, { app = this.#parts.app, dialect }: surface.RecordOptions<M>) {
    // Throws for an unknown name before anything is opened.
    const { conversation, done } = this.#folding(dialect);
    const once = new OnceKeys();
    const failures: unknown[] = [];
    const onRecord = (record: JournalRecord): void => {
      try {
        if (failures.length === 0) conversation.add(record);
        once.absorb(record);
      } catch (error) {
        failures.push(error); // Not the store's to handle: the journal is closed, and the caller gets it.
      }
    };
    const opened = { intents: this.#parts.recordsToolStarts };
    const { journal, records, recovery } = await this.#journals.open(id, { app, opened, onRecord });
    try {
      this.#assertOpen();
      for (const record of records) onRecord(record);
      if (failures.length > 0) throw failures[0];
      return { journal, conversation: done(), once, recovery, opened };
    } catch (error) {
      await journal.close();
      throw error;
    }
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
    return this.#live.get(id) ?? null;
  }

  async read<M>(id: string, options: surface.ReadOptions<M> = {}): Promise<surface.Reading<M>> {
    this.#assertOpen();
    const { dialect, until } = reading("options", () => ({ ...options }));
    this.#dialectOf(dialect);
    if (until !== undefined) return this.#readUntil(id, until, dialect);
    const holder = await this.#journals.holder(id);
    const { records, recovery } = await this.#journals.read(id);
    const last = records.at(-1);
    return readingOf(id, this.#fold(records, dialect), {
      recovery,
      holder,
      ...(last ? { cursor: cursorOf(last) } : {}),
    });
  }

  /** A replaced conversation has no writer, and what was wrong with the journal's end does not concern it. */
  async #readUntil<M>(
    id: string,
    until: number,
    dialect: surface.ReadOptions<M>["dialect"],
  ): Promise<surface.Reading<M>> {
    const fold = this.#folding(dialect);
    let cursor: string | undefined;
    for await (const record of this.#journals.history(id)) {
      if (record.seq > until) break;
      fold.conversation.add(record);
      cursor = cursorOf(record);
    }
    return readingOf(id, fold.done(), { recovery: FOUND_CLEAN, holder: null, ...defined({ cursor }) });
  }

  async once(id: string, key: string, content: string): Promise<Omit<surface.Once, "repeated"> | null> {
    this.#assertOpen();
    const digest = digestOf(key, content);
    const live = this.#live.get(id);
    if (live) return live.findOnce(key, digest);
    const { records } = await this.#journals.read(id);
    const found = OnceKeys.in(records).find(key, digest);
    // A database shows what is committed.
    const isDurable = this.#journals.capabilities.lease === "fenced";
    if (!found || isDurable || records.some(({ synced = 0 }) => synced >= found.last)) return found;
    // It is there to be read, but a power cut might still take it: everything that opening shows is durable.
    const opened = await this.#journals.open(id, { app: this.#parts.app });
    await opened.journal.close();
    return OnceKeys.in(opened.records).find(key, digest);
  }

  list(query: surface.ListQuery = {}): Promise<{ readonly sessions: surface.Summary[]; readonly next?: string }> {
    return listSessions(this.#journals, query, realPath);
  }

  async *search(
    text: string,
    query: surface.ListQuery = {},
    options: SearchWatch = {},
  ): AsyncGenerator<surface.SearchHit, void, undefined> {
    this.#assertOpen();
    const { limit, after: _after, ...filter } = query;
    const isFiltered = Object.keys(filter).some((name) => name !== "empty");
    const wanted = isFiltered ? await this.#ids(filter) : null;
    let count = 0;
    for await (const hit of this.#search.search(text, (id) => wanted?.has(id) ?? true, options)) {
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

  async fork<M>(id: string, options: surface.ForkOptions<M> = {}): Promise<surface.Session<M>> {
    this.#assertOpen();
    const given = reading("options", () => ({ ...options }));
    const { at, dialect } = given;
    this.#dialectOf(dialect);
    const { title, cwd, labels } = admitAttributes(
      defined({ title: given.title, cwd: given.cwd, labels: given.labels }) as Partial<typeof given>,
      this.#cleaning,
    );
    await this.#live.get(id)?.settled();
    const { records } = await this.#journals.read(id);
    const source = this.#fold(records, dialect);
    const first = forkRecords(source, {
      from: id,
      ...defined({ at, title, cwd, labels }),
    });
    return this.#begin(source.dialect, first as unknown as NewRecord[], given);
  }

  delete(id: string): Promise<void> {
    return this.#journals.delete(id);
  }

  async trashed(): Promise<surface.TrashedSession[]> {
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

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  [endsNow](ending: Ending): void | Promise<void> {
    const waiting = [...this.#live.values()]
      .map((session) => session[endsNow](ending))
      .filter((one) => one !== undefined);
    return waiting.length > 0 ? Promise.all(waiting).then(() => undefined) : undefined;
  }

  [onClosed](listener: () => void): () => void {
    this.#closed.add(listener);
    return () => this.#closed.delete(listener);
  }

  async #close(): Promise<void> {
    const open = [...this.#live.values(), ...this.#recorders];
    const closed = await Promise.allSettled(open.map((session) => session.close()));
    try {
      await this.#search.close();
    } finally {
      try {
        await this.#journals.close();
      } finally {
        for (const listener of [...this.#closed]) listener();
      }
    }
    for (const one of closed) if (one.status === "rejected") throw one.reason;
  }

  async #begin<M>(
    dialect: Dialect<M>,
    first: readonly NewRecord[],
    options: Pick<surface.OpenOptions<M>, "app" | "draftMs" | "draftBytes">,
    id?: string,
  ): Promise<surface.Session<M>> {
    const { journal, conversation, opened } = await this.#createJournal(dialect, first, options, id);
    return this.#join(journal, conversation, FOUND_CLEAN, opened, options);
  }

  async #createJournal<M>(
    dialect: Dialect<M>,
    first: readonly NewRecord[],
    { app = this.#parts.app }: Pick<surface.OpenOptions<M>, "app">,
    id: string = newId(),
  ) {
    const opened = { intents: this.#parts.recordsToolStarts, dialect: dialect.name };
    const journal = await this.#journals.create(id, first, { app, opened });
    if (this.#closing) {
      await journal.close();
      this.#assertOpen();
    }
    const conversation = new Conversation<M>(this.#parts.lookup, dialect);
    const { at } = journal;
    const start = journal.head - first.length + 1;
    for (let seq = 1; seq < start; seq++) conversation.add({ kind: "segment", seq, at } as JournalRecord);
    for (const [index, record] of first.entries()) {
      conversation.add({ ...(structuredClone(record) as NewRecord), seq: start + index, at } as JournalRecord);
    }
    return { journal, conversation, opened };
  }

  #join<M>(
    journal: Journal,
    conversation: Conversation<M>,
    recovery: Recovery,
    opened: Readonly<Record<string, string | boolean>>,
    options: Pick<surface.OpenOptions<M>, "app" | "draftMs" | "draftBytes">,
    once = new OnceKeys(),
  ): LiveSession<M> {
    const holder = holderHere(options.app ?? this.#parts.app);
    const session = new LiveSession<M>({
      store: this.#journals,
      journal,
      conversation,
      recovery,
      holder,
      redactor: this.#parts.redactor,
      opened,
      options,
      fold: (dialect) => new Conversation(this.#parts.lookup, dialect),
      once,
      onTurnEnd: (id) => this.#search.note(id),
      onClose: (id) => this.#live.delete(id),
    });
    this.#live.set(journal.id, session);
    return session;
  }

  /** `given`: a dialect that overrides the journal, or the name of the one that the session must be in. */
  #fold<M>(records: readonly JournalRecord[], given: DialectName | Dialect<M> | undefined): Conversation<M> {
    const { conversation, done } = this.#folding(given);
    for (const record of records) conversation.add(record);
    return done();
  }

  #folding<M>(given: DialectName | Dialect<M> | undefined) {
    const named = this.#dialectOf(given);
    const conversation = new Conversation<M>(this.#parts.lookup, named);
    const done = (): Conversation<M> => {
      // Throws DIALECT_UNKNOWN now instead of at the first read.
      void conversation.dialect;
      const { dialect } = conversation.attributes;
      if (typeof given === "string" && dialect !== given) throw otherDialect(dialect, given);
      if (named) this.#remember(named);
      return conversation;
    };
    return { conversation, done };
  }

  /** The application's own dialect: from now on, its sessions can also be listed, searched and read. */
  #remember<M>(dialect: Dialect<M>): void {
    if (this.#parts.lookup(dialect.name) !== dialect) this.#parts.own.set(dialect.name, dialect);
  }

  /** The dialect that the options name; undefined if they name none. */
  #dialectOf<M>(given: DialectName | Dialect<M> | null | undefined): Dialect<M> | undefined {
    if (given === undefined || given === null || typeof given === "object") return given ?? undefined;
    const found = this.#parts.lookup(given);
    if (!found) throw dialectUnknown(given);
    return found;
  }

  async #ids(filter: surface.ListQuery): Promise<Set<string>> {
    const ids = new Set<string>();
    let after: string | undefined;
    do {
      const page = await this.list({ ...filter, limit: 1000, ...defined({ after }) });
      for (const { id } of page.sessions) ids.add(id);
      after = page.next;
    } while (after !== undefined);
    return ids;
  }

  readonly #cleaning: Cleaning = { text: (text) => this.#parts.redactor?.(text) ?? text, path: realPath };

  #assertOpen(): void {
    if (this.#closing) throw storeClosed(this.url);
  }
}

function holderHere(app: string): Holder {
  return { pid: process.pid, host: hostname(), app, since: new Date().toISOString() };
}

function cannotRestore(url: string): HoldfastError {
  return notSupported("restore", url, "Its trash cannot be read through Holdfast.");
}
