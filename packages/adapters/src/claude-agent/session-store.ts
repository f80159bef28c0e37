import { isHoldfastError, type JournalRecord, type Store } from "holdfast";
import { type JournalStore, type JournalStoreOptions, openJournalStore } from "holdfast/store";
import { openStores } from "../state-journal/open-stores.ts";
import { StateJournal } from "../state-journal/state-journal.ts";
import { StateJournals } from "../state-journal/state-journals.ts";
import { endRecords, interruptedCall, promptRecords, startRecords } from "./calls.ts";
import { copyEntries, entryIn, entryRecords } from "./entries.ts";
import { APP, attributesOf, keyOf, LABELS, mainOf, nameOf, sessionOf } from "./keys.ts";
import { describeInterruption } from "./model-words.ts";
import { TranscriptState } from "./state.ts";
import {
  HOOK_EVENTS,
  type HookEvent,
  type HookInput,
  type HookMatcher,
  type HookOutput,
  type Hooks,
  type SessionEntry,
  type SessionInterruption,
  type SessionKey,
} from "./surface.ts";

export interface HoldfastSessionStoreOptions {
  /**
   * `power` (the default): what is recorded survives a power cut. `process`: it survives SIGKILL; a power cut can cost
   * the last second.
   */
  readonly durability?: "power" | "process";
  /** How long a transcript stays reserved for this process after its last write, in milliseconds. Default 1000. */
  readonly releaseMs?: number;
  /** How long to wait for a transcript that another process is writing to, in milliseconds. Default 10,000. */
  readonly waitMs?: number;
}

/** The options of `query` that record. */
export interface RecordingOptions {
  readonly sessionStore: HoldfastSessionStore;
  /** Each entry is passed on as soon as Claude Code has written it. */
  readonly sessionStoreFlush: "eager";
  readonly hooks: Hooks;
}

const NOTHING: SessionInterruption = { prompts: [], calls: [] };

type OwnHooks = Partial<Record<string, readonly unknown[] | undefined>>;

/**
 * Keeps the sessions of the Claude Agent SDK in a Holdfast store: its `SessionStore`, and hooks that record each prompt
 * and each tool call before Claude Code acts on it. Open it with `HoldfastSessionStore.open`.
 */
export class HoldfastSessionStore implements AsyncDisposable {
  readonly #store: Store;
  readonly #journals: JournalStore;
  readonly #options: HoldfastSessionStoreOptions;
  readonly #transcripts = new StateJournals<TranscriptState>();
  /** Sessions that had a prompt in this process: what is unfinished there is this process's own. */
  readonly #prompting = new Set<string>();

  private constructor(store: Store, journals: JournalStore, options: HoldfastSessionStoreOptions) {
    this.#store = store;
    this.#journals = journals;
    this.#options = options;
  }

  /**
   * Opens a store at an address, as `openStore` of the library does: a folder, `sqlite:` with a file, `postgres:` with
   * a database, or `memory:`. Throws STORE_URL_INVALID, STORE_FORBIDDEN, STORE_IO, FORMAT_NEWER.
   */
  static open(address: string, options: HoldfastSessionStoreOptions = {}): Promise<HoldfastSessionStore> {
    return HoldfastSessionStore.openWith((given) => openJournalStore(address, given), options);
  }

  /** Like `open`, for a store that you open yourself. `open` gets options to pass on to it. */
  static async openWith(
    open: (options: JournalStoreOptions) => Promise<JournalStore>,
    options: HoldfastSessionStoreOptions = {},
  ): Promise<HoldfastSessionStore> {
    const { store, journals } = await openStores(open, APP, options.durability);
    return new HoldfastSessionStore(store, journals, options);
  }

  /** Your options for `query`, with those that record. Your own hooks run too. */
  options<O extends object>(own: O = {} as O): Omit<O, keyof RecordingOptions> & RecordingOptions {
    const { hooks = {} } = own as { readonly hooks?: OwnHooks };
    return { ...own, sessionStore: this, sessionStoreFlush: "eager", hooks: { ...hooks, ...this.#hooksBefore(hooks) } };
  }

  /** The hooks alone, if you pass the options yourself. */
  get hooks(): Hooks {
    return this.#hooksBefore({});
  }

  /**
   * What the last process left unfinished. The model is told by itself, with the next prompt. `sessionId` is that of
   * the SDK; name the project's key if several projects have a session with this id.
   */
  async interruption(sessionId: string, projectKey?: string): Promise<SessionInterruption> {
    const project = projectKey ?? (await this.#projectOf(sessionId));
    return project === null ? NOTHING : this.#interruption({ projectKey: project, sessionId });
  }

  /**
   * Called by the SDK. Durable when it resolves. Entries with a `uuid` that is stored already are left out. Throws
   * SESSION_BUSY if another process keeps writing to the transcript, and store errors.
   */
  async append(key: SessionKey, entries: readonly SessionEntry[]): Promise<void> {
    const copies = copyEntries(entries);
    if (copies.length === 0) return;
    await this.#transcript(key).write({ plan: (state) => entryRecords(state, key, copies) });
  }

  /** Called by the SDK: all entries, in order; null if there are none. */
  async load(key: SessionKey): Promise<SessionEntry[] | null> {
    // Claude Code is about to be started again.
    if (key.subpath === undefined) this.#prompting.delete(nameOf(key));
    const entries: SessionEntry[] = [];
    const uuids = new Set<string>();
    for (const record of await this.#records(key)) {
      const entry = entryIn(record);
      if (!entry || (entry.uuid !== undefined && uuids.has(entry.uuid))) continue;
      if (entry.uuid !== undefined) uuids.add(entry.uuid);
      entries.push(entry);
    }
    return entries.length > 0 ? entries : null;
  }

  /** Called by the SDK. The last written first. */
  async listSessions(projectKey: string): Promise<{ sessionId: string; mtime: number }[]> {
    const found: { sessionId: string; mtime: number }[] = [];
    for await (const { labels, at } of this.#listed({}, { [LABELS.project]: projectKey })) {
      const sessionId = labels[LABELS.session];
      if (sessionId === undefined || labels[LABELS.subpath] !== undefined) continue;
      found.push({ sessionId, mtime: Math.floor(Date.parse(at)) });
    }
    return found;
  }

  /** Called by the SDK: the transcripts of sub-agents. */
  async listSubkeys(key: Omit<SessionKey, "subpath">): Promise<string[]> {
    const found = await this.#children(key);
    return found.filter(({ hasEntries }) => hasEntries).map(({ subpath }) => subpath);
  }

  /** Called by the SDK. Moves the transcript, and those of its sub-agents, to the trash of the store. */
  async delete(key: SessionKey): Promise<void> {
    // The main one last: after a crash in between, the session is still there and can be deleted again.
    const children = key.subpath === undefined ? await this.#children(key) : [];
    for (const one of [...children.map(({ subpath }) => ({ ...key, subpath })), key])
      await this.#transcripts.delete(nameOf(one), this.#transcript(one));
  }

  /** Lets other processes write to the transcripts at once, waits for what is being written, and closes the store. */
  async close(): Promise<void> {
    await this.#transcripts.releaseAll();
    await this.#store.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #hooksBefore(own: OwnHooks): Hooks {
    const recording: Record<HookEvent, (input: HookInput) => Promise<HookOutput>> = {
      UserPromptSubmit: (input) => this.#prompted(input),
      PreToolUse: (input) => this.#starts(input),
      PostToolUse: (input) => this.#ended(input),
      PostToolUseFailure: (input) => this.#ended(input),
    };
    const hooks = HOOK_EVENTS.map((event) => {
      const others = (own[event] ?? []) as readonly HookMatcher[];
      return [event, [{ hooks: [recording[event]] }, ...others]];
    });
    return Object.fromEntries(hooks) as Hooks;
  }

  async #prompted(input: HookInput): Promise<HookOutput> {
    try {
      const key = mainOf(keyOf(input));
      const isFirst = !this.#prompting.has(nameOf(key));
      const interruption = isFirst ? await this.#interruption(key) : NOTHING;
      const words = describeInterruption(interruption);
      const telling = words === null ? null : { words, calls: interruption.calls.map(({ id }) => id) };
      await this.#transcript(key).write({ plan: (state) => promptRecords(state, input, telling) });
      this.#prompting.add(nameOf(key));
      if (words === null) return {};
      return { hookSpecificOutput: { hookEventName: "UserPromptSubmit", additionalContext: words } };
    } catch (error) {
      return {
        decision: "block",
        reason: `Holdfast could not record the prompt, so it was not sent. ${wordsOf(error)}`,
      };
    }
  }

  async #starts(input: HookInput): Promise<HookOutput> {
    try {
      await this.#transcript(keyOf(input)).write({ plan: (state) => startRecords(state, input) });
      return {};
    } catch (error) {
      const permissionDecisionReason = `Holdfast could not record the call, so it was not run. ${wordsOf(error)}`;
      return {
        hookSpecificOutput: { hookEventName: "PreToolUse", permissionDecision: "deny", permissionDecisionReason },
      };
    }
  }

  async #ended(input: HookInput): Promise<HookOutput> {
    try {
      await this.#transcript(keyOf(input)).write({ plan: (state) => endRecords(state, input) });
      return {};
    } catch (error) {
      // The tool has run. If the store still fails, the next one does not.
      return { systemMessage: `Holdfast could not record the result of a tool. ${wordsOf(error)}` };
    }
  }

  async #interruption(key: SessionKey): Promise<SessionInterruption> {
    const state = await this.#transcript(key).read();
    if (!state) return NOTHING;
    const calls = state.interruptedCalls.map((call) => interruptedCall(call));
    const unreadable: string[] = [];
    for (const { subpath } of await this.#children(key)) {
      try {
        const found = (await this.#transcript({ ...key, subpath }).read())?.interruptedCalls ?? [];
        calls.push(...found.filter(({ id }) => !state.wasTold(id)).map((call) => interruptedCall(call, subpath)));
      } catch (error) {
        // One bad transcript must not block every prompt of the session (P9).
        if (!isHoldfastError(error, "FORMAT_NEWER", "JOURNAL_UNREADABLE", "PATH_UNSAFE")) throw error;
        unreadable.push(subpath);
      }
    }
    return { prompts: state.promptsNotMirrored, calls, ...(unreadable.length > 0 ? { unreadable } : {}) };
  }

  /** The transcripts of sub-agents, also those of which only hooks have reported anything. */
  async #children(key: SessionKey): Promise<{ readonly subpath: string; readonly hasEntries: boolean }[]> {
    const found: { subpath: string; hasEntries: boolean }[] = [];
    for await (const { labels } of this.#listed({ parentSession: sessionOf(mainOf(key)) }, {})) {
      const subpath = labels[LABELS.subpath];
      if (subpath !== undefined) found.push({ subpath, hasEntries: labels[LABELS.session] !== undefined });
    }
    return found;
  }

  #transcript(key: SessionKey): StateJournal<TranscriptState> {
    const { releaseMs = 1000, waitMs = 10_000 } = this.#options;
    return this.#transcripts.get(
      nameOf(key),
      () =>
        new StateJournal({
          journals: this.#journals,
          session: sessionOf(key),
          app: APP,
          attributes: attributesOf(key),
          releaseMs,
          waitMs,
          empty: () => new TranscriptState(),
        }),
    );
  }

  async #records(key: SessionKey): Promise<JournalRecord[]> {
    const records: JournalRecord[] = [];
    try {
      for await (const record of this.#journals.history(sessionOf(key))) records.push(record);
    } catch (error) {
      if (!isHoldfastError(error, "SESSION_NOT_FOUND")) throw error;
    }
    return records;
  }

  async #projectOf(sessionId: string): Promise<string | null> {
    for await (const { labels } of this.#listed({}, { [LABELS.session]: sessionId })) {
      if (labels[LABELS.session] === sessionId && labels[LABELS.subpath] === undefined)
        return labels[LABELS.project] ?? null;
    }
    return null;
  }

  async *#listed(
    where: Readonly<Record<string, string>>,
    labels: Readonly<Record<string, string>>,
  ): AsyncGenerator<{ readonly labels: Readonly<Record<string, string>>; readonly at: string }> {
    let after: string | undefined;
    do {
      const page = await this.#journals.list({
        where: { app: APP, ...where },
        hints: { within: { labels } },
        limit: 1000,
        ...(after === undefined ? {} : { after }),
      });
      for (const { at, summary } of page.sessions) {
        const { labels: found = {} } = (summary ?? {}) as { readonly labels?: Readonly<Record<string, string>> };
        if (Object.entries(labels).every(([name, value]) => found[name] === value)) yield { labels: found, at };
      }
      after = page.next;
    } while (after !== undefined);
  }
}

function wordsOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
