import { hostname } from "node:os";
import process from "node:process";
import { Admission } from "../admit/admit.ts";
import { Conversation } from "../conversation/conversation.ts";
import { defined } from "../defined.ts";
import type { Dialect } from "../dialects/dialect.ts";
import type { DialectName } from "../dialects/index.ts";
import type { Holder, Journal, JournalStore, Recovery } from "../journal/contract.ts";
import { newId } from "../journal/id.ts";
import { cursorOf, type JournalRecord, type NewRecord } from "../journal/record.ts";
import type { Redactor } from "../redact/redactor.ts";
import { type ForkOptions, forkRecords } from "../replace/fork.ts";
import { partIn, stateOfPart } from "../replace/state-of-part.ts";
import { type SearchHit, SearchIndex, type SearchWatch } from "../search/search-index.ts";
import { type Reading, readingOf } from "../view/reading.ts";
import { type Ending, endsNow } from "./guarded.ts";
import { type KnownDialects, otherDialect } from "./known-dialects.ts";
import { type Answer, findAnswer } from "./prompts/answer.ts";
import { keyDigestOf } from "./prompts/prompt-key.ts";
import { LiveRecorder } from "./recorder.ts";
import { LiveSession } from "./session.ts";
import type * as surface from "./surface.ts";
import type { CloseOptions } from "./turn/surface.ts";
import { digestOf, OnceKeys } from "./writing/once.ts";

export interface ConversationsParts {
  readonly dialects: KnownDialects;
  readonly redactor: Redactor | null;
  readonly app: string;
  readonly recordsToolStarts: boolean;
  /** Throws STORE_CLOSED. */
  readonly assertOpen: () => void;
}

/** What a new session begins with. */
export interface NewSession<M> {
  readonly dialect: Dialect<M>;
  readonly first: readonly NewRecord[];
  readonly id?: string | undefined;
}

type Opening<M> = Pick<surface.OpenOptions<M>, "app" | "draftMs" | "draftChars">;

const FOUND_CLEAN: Recovery = { unclean: false, cutBytes: 0, damaged: [], missing: [] };

/**
 * The sessions of a store as conversations: those that are open, and how others are opened, read and searched. Lists
 * do without it, so it is loaded when it is first needed (`store.ts`).
 */
export class Conversations {
  readonly #journals: JournalStore;
  readonly #parts: ConversationsParts;
  readonly #search: SearchIndex;
  // biome-ignore lint/suspicious/noExplicitAny: the type of the messages is the application's to say.
  readonly #live = new Map<string, LiveSession<any>>();
  // biome-ignore lint/suspicious/noExplicitAny: the type of the messages is the application's to say.
  readonly #recorders = new Set<LiveRecorder<any>>();

  constructor(journals: JournalStore, parts: ConversationsParts) {
    this.#journals = journals;
    this.#parts = parts;
    this.#search = new SearchIndex(journals, { dialectNamed: parts.dialects.find });
  }

  // biome-ignore lint/suspicious/noExplicitAny: the type of the messages is the application's to say.
  live(id: string): LiveSession<any> | null {
    return this.#live.get(id) ?? null;
  }

  async create<M>(beginning: NewSession<M>, options: Opening<M>): Promise<surface.Session<M>> {
    const { journal, conversation, opened } = await this.#createJournal(beginning, options);
    return this.#join(journal, conversation, FOUND_CLEAN, opened, options);
  }

  async resume<M>(id: string, given: surface.OpenOptions<M>): Promise<LiveSession<M>> {
    const { journal, conversation, once, recovery, opened } = await this.#openJournal(id, given);
    return this.#join(journal, conversation, recovery, opened, given, once);
  }

  /** A recorder for a session that is there, or for a new one. */
  async record<M>(target: string | NewSession<M>, given: surface.RecordOptions<M>): Promise<surface.Recorder<M>> {
    // A recorder has no way to record the start of a call.
    const { journal, conversation } =
      typeof target === "string"
        ? await this.#openJournal(target, given, false)
        : await this.#createJournal(target, given, false);
    const { id } = journal;
    const recorder: LiveRecorder<M> = new LiveRecorder<M>({
      journal,
      conversation,
      admission: new Admission(conversation.dialect, this.#parts.redactor),
      fold: async () => this.#fold((await this.#journals.read(id)).records, conversation.dialect),
      read: async (isActive) => {
        const { records, recovery } = await this.#journals.read(id);
        const holder = isActive ? await this.#journals.holder(id) : null;
        return readingOf(id, this.#fold(records, conversation.dialect), { recovery, holder });
      },
      onTurnEnd: () => this.#search.note(id),
      onClose: () => this.#recorders.delete(recorder),
    });
    this.#recorders.add(recorder);
    return recorder;
  }

  async read<M>(id: string, { dialect, until }: surface.ReadOptions<M>): Promise<Reading<M>> {
    if (until !== undefined) return this.#readUntil(id, until, dialect);
    const holder = await this.#journals.holder(id);
    const { records, recovery } = await this.#journals.read(id);
    const last = records.at(-1);
    const cursor = last && cursorOf(last);
    return readingOf(id, this.#fold(records, dialect), { recovery, holder, ...defined({ cursor }) });
  }

  /** A replaced conversation has no writer, and what was wrong with the journal's end does not concern it. */
  async #readUntil<M>(id: string, until: number, dialect: surface.ReadOptions<M>["dialect"]): Promise<Reading<M>> {
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

  async answer<M>(
    id: string,
    key: string,
    { dialect, signal }: Pick<surface.ReadOptions<M>, "dialect"> & { readonly signal?: AbortSignal },
  ): Promise<Answer<M> | null> {
    const digest = keyDigestOf(key);
    await this.#live.get(id)?.settled();
    return findAnswer<M>({
      ...{ store: this.#journals, session: id, key: digest, signal, assertOpen: this.#parts.assertOpen },
      fold: () => this.#folding(dialect).conversation,
    });
  }

  async fork<M>(
    id: string,
    changed: Omit<ForkOptions, "from">,
    given: surface.ForkOptions<M>,
  ): Promise<surface.Session<M>> {
    await this.#live.get(id)?.settled();
    const { records } = await this.#journals.read(id);
    const source = this.#fold(records, given.dialect);
    const whole = forkRecords(source, { from: id, ...changed });
    const part = partIn(source, whole);
    const appState = part && (await stateOfPart(() => this.#journals.history(id), part));
    const first = appState ? forkRecords(source, { from: id, ...changed, appState }) : whole;
    return this.create({ dialect: source.dialect, first: first as unknown as NewRecord[] }, given);
  }

  search(
    text: string,
    isWanted: (id: string) => boolean,
    options: SearchWatch,
  ): AsyncGenerator<SearchHit, void, undefined> {
    return this.#search.search(text, isWanted, options);
  }

  /** Throws the first error of a session that could not be closed. */
  async close(options: CloseOptions): Promise<void> {
    const open = [...this.#live.values(), ...this.#recorders];
    const closed = await Promise.allSettled(open.map((session) => session.close(options)));
    await this.#search.close();
    for (const one of closed) if (one.status === "rejected") throw one.reason;
  }

  [endsNow](ending: Ending): void | Promise<void> {
    const waiting = [...this.#live.values()]
      .map((session) => session[endsNow](ending))
      .filter((one) => one !== undefined);
    return waiting.length > 0 ? Promise.all(waiting).then(() => undefined) : undefined;
  }

  async #openJournal<M>(
    id: string,
    { app = this.#parts.app, dialect }: surface.RecordOptions<M>,
    intents = this.#parts.recordsToolStarts,
  ) {
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
    const opened = { intents };
    const { journal, records, recovery } = await this.#journals.open(id, { app, opened, onRecord });
    try {
      this.#parts.assertOpen();
      for (const record of records) onRecord(record);
      if (failures.length > 0) throw failures[0];
      return { journal, conversation: done(), once, recovery, opened };
    } catch (error) {
      await journal.close();
      throw error;
    }
  }

  async #createJournal<M>(
    { dialect, first, id = newId() }: NewSession<M>,
    { app = this.#parts.app }: Pick<surface.OpenOptions<M>, "app">,
    intents = this.#parts.recordsToolStarts,
  ) {
    const opened = { intents, dialect: dialect.name };
    const journal = await this.#journals.create(id, first, { app, opened });
    try {
      this.#parts.assertOpen();
    } catch (error) {
      await journal.close();
      throw error;
    }
    const conversation = new Conversation<M>(this.#parts.dialects.find, dialect);
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
    options: Opening<M>,
    once = new OnceKeys(),
  ): LiveSession<M> {
    const holder = holderHere(options.app ?? this.#parts.app);
    const session: LiveSession<M> = new LiveSession<M>({
      store: this.#journals,
      journal,
      conversation,
      recovery,
      holder,
      redactor: this.#parts.redactor,
      opened,
      options,
      fold: (dialect) => new Conversation(this.#parts.dialects.find, dialect),
      once,
      assertStoreOpen: this.#parts.assertOpen,
      onTurnEnd: (id) => this.#search.note(id),
      // It may have been opened again, after its lease was lost.
      onClose: (id) => this.#live.get(id) === session && this.#live.delete(id),
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
    const { dialects } = this.#parts;
    const named = dialects.named(given);
    const conversation = new Conversation<M>(dialects.find, named);
    const done = (): Conversation<M> => {
      // Throws DIALECT_UNKNOWN now instead of at the first read.
      void conversation.dialect;
      const { dialect } = conversation.attributes;
      if (typeof given === "string" && dialect !== given) throw otherDialect(dialect, given);
      if (named) dialects.remember(named);
      return conversation;
    };
    return { conversation, done };
  }
}

function holderHere(app: string): Holder {
  return { pid: process.pid, host: hostname(), app, since: new Date().toISOString() };
}
