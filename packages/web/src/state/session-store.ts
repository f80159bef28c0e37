import { follow } from "../api/events.ts";
import { get, Refusal } from "../api/http.ts";
import type { ChatState, Item, Session, StateEvent, Timeline, Transcript } from "../api/wire.ts";
import { type History, readTimeline } from "../timeline/read-timeline.ts";
import { draftText, type LiveText, withText } from "./live-text.ts";
import { locate } from "./locate.ts";
import { Observable } from "./observable.ts";
import { messageOf, missingPages, PAGE, type SparseItems, withRange, withSplice } from "./sparse-items.ts";

/** How many items are loaded at first: the end of the conversation, which is what people look at. */
const FIRST_PAGE = 2 * PAGE;
/** Another process's records come one by one; they are read together. */
const GATHER_MS = 150;
const TIMELINE_MS = 1000;

/** One session, as far as the page has loaded it, kept current by the server's events. */
export class SessionStore {
  readonly id: string;
  readonly session = new Observable<Session | null>(null);
  readonly items = new Observable<SparseItems>([]);
  readonly live = new Observable<LiveText | null>(null);
  readonly history = new Observable<History | null>(null);
  readonly failure = new Observable<Refusal | null>(null);
  readonly isConnected = new Observable(true);
  readonly isDeleted = new Observable(false);
  #cursor = "start";
  /** Names the state of the items, in a session that this server has open. */
  #version: string | null = null;
  #stop: (() => void) | null = null;
  #isOver = false;
  readonly #loading = new Set<number>();
  #gather: ReturnType<typeof setTimeout> | undefined;
  #timeline: ReturnType<typeof setTimeout> | undefined;
  #timelineTakesMs = 0;

  constructor(id: string) {
    this.id = id;
  }

  /** The state of a session that this server has open; null for any other. */
  get chat(): ChatState | null {
    return this.session.value?.state ?? null;
  }

  async load(): Promise<void> {
    try {
      const [session, transcript] = await Promise.all([
        get<Session>(`/sessions/${this.id}`),
        get<Transcript>(`/sessions/${this.id}/transcript`, { last: FIRST_PAGE }),
      ]);
      if (this.#isOver) return;
      this.failure.set(null);
      this.session.set(session);
      this.items.set(withRange([], transcript.from, transcript.items, transcript.count));
      this.#cursor = transcript.cursor ?? "start";
      this.#version = transcript.version;
      this.#follow();
      void this.#loadTimeline();
    } catch (error) {
      this.#failed(error);
    }
  }

  close(): void {
    this.#isOver = true;
    this.#stop?.();
    clearTimeout(this.#gather);
    clearTimeout(this.#timeline);
  }

  /** Loads the items of a range, those that are not there yet. */
  ensure(from: number, to: number): void {
    for (const page of missingPages(this.items.value, from, to)) void this.#loadPage(page);
  }

  /** Loads the page of one item, and waits for it. */
  async ensureIndex(index: number): Promise<void> {
    if (!this.items.value[index]) await this.#loadPage(Math.floor(index / PAGE) * PAGE);
  }

  /** The index of a message, a call, or the item nearest to a time; null if the conversation is empty. */
  find(wanted: {
    readonly message?: string;
    readonly call?: string;
    readonly atMs: number | null;
  }): Promise<number | null> {
    return locate(
      {
        items: () => this.items.value,
        load: (page) => this.#loadPage(page),
      },
      wanted,
    );
  }

  async #loadPage(from: number): Promise<void> {
    if (this.#loading.has(from)) return;
    this.#loading.add(from);
    try {
      const got = await get<Transcript>(`/sessions/${this.id}/transcript`, { from, limit: PAGE });
      if (!this.#isOver)
        this.items.update((items) => withRange(items, got.from, got.items, Math.max(got.count, items.length)));
    } catch (error) {
      this.#failed(error);
    } finally {
      this.#loading.delete(from);
    }
  }

  #follow(): void {
    this.#stop?.();
    this.#stop = follow(this.id, this.#cursor, {
      record: (record) => this.#record(record),
      text: (event) => this.live.update((live) => withText(live, event)),
      state: (event) => this.#state(event),
      startOver: () => void this.load(),
      closed: () => this.#gatherChanges(),
      deleted: () => this.isDeleted.set(true),
      connection: (isOpen) => this.isConnected.set(isOpen),
    });
  }

  #record(record: { readonly kind: string }): void {
    if (record.kind === "draft" && !this.session.value?.here)
      this.live.update((live) => draftText(live, record as Readonly<Record<string, unknown>>));
    if (!this.session.value?.here) this.#gatherChanges();
    if (record.kind !== "draft") this.#gatherTimeline();
  }

  #state({ whole, version, state, items, event }: StateEvent): void {
    const step = stepTo(version, this.#version);
    if (step === "next" && items) {
      this.items.update((known) => withSplice(known, items.at, items.remove, items.insert));
      this.#version = version;
    } else if (step === "unknown") void this.#readAgain();
    const before = this.session.value;
    if (!before) return;
    const chat = { ...before.state, ...state, ...withOutput(before.state, event) } as ChatState;
    const { title, queue, interruption } = chat;
    this.session.set({ ...before, here: true, state: chat, title, queue, interruption });
    if (state.live === null || event?.type === "retry") this.live.set(null);
    if (whole || event?.type === "turn.started" || event?.type === "turn.ended" || event?.type === "replaced")
      this.#gatherTimeline();
  }

  /** The items changed in a way that no event told us. */
  async #readAgain(): Promise<void> {
    try {
      const got = await get<Transcript>(`/sessions/${this.id}/transcript`, { last: FIRST_PAGE });
      if (this.#isOver) return;
      this.items.update((items) => withRange(items.slice(0, got.from), got.from, got.items, got.count));
      this.#version = got.version;
    } catch (error) {
      this.#failed(error);
    }
  }

  /** Something was recorded by a process other than this server: read it again, from where we are. */
  #gatherChanges(): void {
    clearTimeout(this.#gather);
    this.#gather = setTimeout(() => void this.#readChanges(), GATHER_MS);
  }

  async #readChanges(): Promise<void> {
    try {
      const [session, changes] = await Promise.all([
        get<Session>(`/sessions/${this.id}`),
        get<Transcript>(`/sessions/${this.id}/transcript`, {
          since: this.#cursor === "start" ? undefined : this.#cursor,
        }),
      ]);
      if (this.#isOver) return;
      this.session.set(session);
      this.items.update((items) => withRange(items.slice(0, changes.from), changes.from, changes.items, changes.count));
      this.#cursor = changes.cursor ?? this.#cursor;
      this.#version = changes.version;
      const answer = this.live.value?.answer;
      if (session.status !== "running" || changes.items.some((item: Item) => messageOf(item.id) === answer))
        this.live.set(null);
    } catch (error) {
      if (error instanceof Refusal && error.status === 410) await this.load();
      else this.#failed(error);
    }
  }

  #gatherTimeline(): void {
    if (this.#timeline !== undefined) return;
    this.#timeline = setTimeout(
      () => {
        this.#timeline = undefined;
        void this.#loadTimeline();
      },
      Math.max(TIMELINE_MS, this.#timelineTakesMs * 10),
    );
  }

  async #loadTimeline(): Promise<void> {
    const startedMs = performance.now();
    try {
      const history = readTimeline(await get<Timeline>(`/sessions/${this.id}/timeline`));
      this.#timelineTakesMs = performance.now() - startedMs;
      if (!this.#isOver) this.history.set(history);
    } catch (error) {
      this.#failed(error);
    }
  }

  #failed(error: unknown): void {
    if (this.#isOver) return;
    if (!(error instanceof Refusal)) throw error;
    this.failure.set(error);
  }
}

/** What an event's version means for items of a known version: nothing new, the next change, or changes are missing. */
function stepTo(version: string, known: string | null): "same" | "next" | "unknown" {
  if (known === null) return "unknown";
  const [name, count] = splitVersion(version);
  const [knownName, knownCount] = splitVersion(known);
  if (name !== knownName || count > knownCount + 1) return "unknown";
  return count === knownCount + 1 ? "next" : "same";
}

function splitVersion(version: string): [name: string, count: number] {
  const dot = version.lastIndexOf(".");
  return [version.slice(0, dot), Number(version.slice(dot + 1))];
}

const OUTPUT_MAX = 16_000;

/** An event says only what a running tool has added to its output. */
function withOutput(state: ChatState | null, event: StateEvent["event"]): Partial<ChatState> {
  if (event?.type !== "tool.output" || typeof event["call"] !== "string") return {};
  const call = event["call"];
  const text = `${state?.outputs[call] ?? ""}${String(event["text"] ?? "")}`.slice(-OUTPUT_MAX);
  return { outputs: { ...state?.outputs, [call]: text } };
}
