import { follow } from "../api/events.ts";
import { get, Refusal } from "../api/http.ts";
import type { ChatState, Epoch, Epochs, Item, Session, StateEvent, Timeline, Transcript } from "../api/wire.ts";
import { FIRST_PAGE, ItemPages } from "./item-pages.ts";
import { draftText, type LiveText, withText } from "./live-text.ts";
import { Observable } from "./observable.ts";
import { PacedText } from "./paced-text.ts";
import { type Detail, type History, readTimeline, type ToolSpan } from "./read-timeline.ts";
import { type Pace, Refresher } from "./refresher.ts";
import { messageOf } from "./sparse-items.ts";

/** Another process's records come one by one; they are read together. */
const CHANGES_PACE: Pace = { leastMs: 150, mostMs: 2000 };
const TIMELINE_PACE: Pace = { leastMs: 1000, mostMs: 5000 };
/** The records that begin or end a bar of a turn, or set a mark: people wait for these. */
const AWAITED = new Set(["turn.started", "turn.resumed", "turn.suspended", "turn.ended", "signal", "epoch"]);
/** A process that opens the session, or is killed, does not say so. */
const HOLDER_MS = 3000;
/** How many bars of a row can be told apart. */
const BUCKETS = 800;
/** A zoom comes in many steps. */
const ZOOM_MS = 120;

/** What the timeline knows of a call. */
export type CallFacts = Pick<ToolSpan, "startMs" | "endMs" | "outcome" | "child">;

/** One session, as far as the page has loaded it, kept current by the server's events. */
export class SessionStore {
  readonly id: string;
  readonly session = new Observable<Session | null>(null);
  /** The current conversation. */
  readonly current: ItemPages;
  readonly #words = new PacedText();
  readonly live: Observable<LiveText | null> = this.#words.shown;
  readonly history = new Observable<History | null>(null);
  readonly detail = new Observable<Detail | null>(null);
  /** By call. */
  readonly facts = new Observable<ReadonlyMap<string, CallFacts>>(new Map());
  /** The conversations before the current one, oldest first. */
  readonly epochs = new Observable<readonly Epoch[]>([]);
  readonly failure = new Observable<Refusal | null>(null);
  readonly isConnected = new Observable(true);
  readonly isDeleted = new Observable(false);
  #cursor = "start";
  /** How often the state was told: an answer that was asked for before the last time is out of date. */
  #states = 0;
  #loads = 0;
  #epochLoads = 0;
  #isReadingHolder = false;
  #stop: (() => void) | null = null;
  #isOver = false;
  readonly #replaced = new Map<number, ItemPages>();
  readonly #changes = new Refresher(() => this.#readChanges(), CHANGES_PACE);
  readonly #timeline = new Refresher(() => this.#loadTimeline(), TIMELINE_PACE);
  #zoom: ReturnType<typeof setTimeout> | undefined;
  #wantedDetail: string | null = null;
  readonly #watch: ReturnType<typeof setInterval>;

  constructor(id: string) {
    this.id = id;
    this.current = this.#pages(undefined);
    this.#watch = setInterval(() => this.#lookForHolder(), HOLDER_MS);
  }

  get items() {
    return this.current.items;
  }

  /** A conversation of this session, by its last record. */
  pagesUntil(until: number | null): ItemPages {
    if (until === null) return this.current;
    const pages = this.#replaced.get(until) ?? this.#pages(until);
    this.#replaced.set(until, pages);
    return pages;
  }

  #pages(until: number | undefined): ItemPages {
    return new ItemPages(
      this.id,
      until,
      (items) => void this.#learn(items),
      (error) => this.#failed(error),
    );
  }

  /** The state of a session that this server has open; null for any other. */
  get chat(): ChatState | null {
    return this.session.value?.state ?? null;
  }

  async load(): Promise<void> {
    const load = ++this.#loads;
    try {
      const [session, transcript] = await Promise.all([
        get<Session>(`/sessions/${this.id}`),
        get<Transcript>(`/sessions/${this.id}/transcript`, { last: FIRST_PAGE }),
      ]);
      if (this.#isOver || load !== this.#loads) return;
      this.#states += 1;
      this.failure.set(null);
      this.session.set(session);
      this.current.start(transcript);
      this.#cursor = transcript.cursor ?? "start";
      this.#follow();
      void this.#timeline.now();
    } catch (error) {
      this.#failed(error);
    }
  }

  close(): void {
    this.#isOver = true;
    this.#stop?.();
    for (const pages of [this.current, ...this.#replaced.values()]) pages.close();
    this.#changes.stop();
    this.#timeline.stop();
    clearTimeout(this.#zoom);
    this.#words.stop();
    clearInterval(this.#watch);
  }

  /** Loads the bars of a part of the timeline, if the whole of it shows them merged. */
  zoomTo(fromMs: number, toMs: number): void {
    const history = this.history.value;
    const isWhole = !history?.isMerged || (fromMs <= (history.startMs ?? 0) && toMs >= (history.endMs ?? 0));
    clearTimeout(this.#zoom);
    if (isWhole) this.#wantedDetail = null;
    else this.#zoom = setTimeout(() => void this.#loadDetail(fromMs, toMs), ZOOM_MS);
  }

  async #loadDetail(fromMs: number, toMs: number): Promise<void> {
    const wanted = `${fromMs} ${toMs}`;
    this.#wantedDetail = wanted;
    // As much again on both sides, for panning.
    const around = toMs - fromMs;
    const window = { fromMs: fromMs - around, toMs: toMs + around };
    const history = await this.#readTimeline(window);
    if (history && this.#wantedDetail === wanted) this.detail.set({ ...window, history });
  }

  async #readTimeline(window?: { readonly fromMs: number; readonly toMs: number }): Promise<History | null> {
    const query = window && {
      from: new Date(window.fromMs).toISOString(),
      to: new Date(window.toMs).toISOString(),
    };
    try {
      const got = await get<Timeline>(`/sessions/${this.id}/timeline`, { ...query, buckets: BUCKETS });
      if (this.#isOver) return null;
      this.#reached();
      const history = readTimeline(got);
      const tools = history.tools.filter(({ count }) => count === 1);
      if (tools.length > 0) this.facts.update((known) => withFacts(known, tools));
      return history;
    } catch (error) {
      this.#failed(error);
      return null;
    }
  }

  /** How long the calls took that were just loaded, where the timeline shows them merged. */
  async #learn(items: readonly Item[]): Promise<void> {
    if (!this.history.value?.isMerged) return;
    const unknown = items.filter((item) => item.kind === "call" && !this.facts.value.has(item.call));
    const times = unknown.map(({ at }) => Date.parse(at));
    // A call runs after it was recorded: until the next item, at least.
    const last = items.at(-1);
    if (last && times.length > 0)
      await this.#readTimeline({ fromMs: Math.min(...times), toMs: Math.max(...times, Date.parse(last.at)) });
  }

  /** Whether another process has the session now. */
  #lookForHolder(): void {
    const session = this.session.value;
    const isElsewhere = session !== null && !session.here;
    if (isElsewhere && !this.#isReadingHolder && document.visibilityState === "visible") void this.#readHolder();
  }

  async #readHolder(): Promise<void> {
    const before = this.session.value?.holder?.pid;
    this.#isReadingHolder = true;
    try {
      const { holder } = await get<Session>(`/sessions/${this.id}`);
      this.#reached();
      if (holder?.pid === before || this.#isOver) return;
      this.#changes.soon();
      this.#timeline.soon();
    } catch (error) {
      this.#failed(error);
    } finally {
      this.#isReadingHolder = false;
    }
  }

  #follow(): void {
    this.#stop?.();
    this.#stop = follow(this.id, this.#cursor, {
      record: (record) => this.#record(record),
      text: (event) => this.#words.update((heard) => withText(heard, event)),
      state: (event) => this.#state(event),
      startOver: () => void this.load(),
      closed: () => this.#changes.later(),
      deleted: () => this.isDeleted.set(true),
      connection: (isOpen) => {
        const isBack = isOpen && !this.isConnected.value;
        this.isConnected.set(isOpen);
        if (isOpen) this.#reached();
        // The server may have died with the turn: nothing that it said before counts any more.
        if (isBack) this.#changes.soon();
      },
    });
  }

  #record(record: { readonly kind: string }): void {
    if (record.kind === "draft" && !this.session.value?.here)
      this.#words.update((heard) => draftText(heard, record as Readonly<Record<string, unknown>>));
    if (!this.session.value?.here) this.#changes.later();
    if (AWAITED.has(record.kind)) this.#timeline.soon();
    else if (record.kind !== "draft") this.#timeline.later();
  }

  #state({ whole, version, state, items, event }: StateEvent): void {
    this.#states += 1;
    this.current.step(version, items);
    const before = this.session.value;
    if (!before) return;
    const chat = { ...before.state, ...state, ...withOutput(before.state, event) } as ChatState;
    const { title, queue, interruption } = chat;
    this.session.set({ ...before, here: true, state: chat, title, queue, interruption });
    if (state.live === null || event?.type === "retry") this.#words.update(() => null);
    if (whole || event?.type === "turn.started" || event?.type === "turn.ended" || event?.type === "replaced")
      this.#timeline.soon();
  }

  /** Something was recorded by a process other than this server: reads it, from where we are. */
  async #readChanges(): Promise<void> {
    const states = this.#states;
    try {
      const [session, changes] = await Promise.all([
        get<Session>(`/sessions/${this.id}`),
        get<Transcript>(`/sessions/${this.id}/transcript`, {
          since: this.#cursor === "start" ? undefined : this.#cursor,
        }),
      ]);
      this.#reached();
      // This server has opened the session meanwhile, and its events tell more; or everything was read again.
      if (this.#isOver || states !== this.#states) return;
      this.session.set(session);
      this.current.replaceEnd(changes);
      this.#cursor = changes.cursor ?? this.#cursor;
      const answer = this.#words.heard?.answer;
      if (session.status !== "running" || changes.items.some((item: Item) => messageOf(item.id) === answer))
        this.#words.update(() => null);
    } catch (error) {
      if (error instanceof Refusal && error.status === 410) await this.load();
      else this.#failed(error);
    }
  }

  async #loadTimeline(): Promise<void> {
    const before = replacements(this.history.value);
    const history = await this.#readTimeline();
    if (!history) return;
    this.history.set(history);
    if (history.isMerged) void this.#learn(this.items.value.filter((item) => item !== undefined));
    if (replacements(history) !== before) void this.#loadEpochs();
  }

  async #loadEpochs(): Promise<void> {
    const load = ++this.#epochLoads;
    try {
      const { epochs } = await get<Epochs>(`/sessions/${this.id}/epochs`);
      if (!this.#isOver && load === this.#epochLoads) this.epochs.set(epochs);
    } catch (error) {
      this.#failed(error);
    }
  }

  /** The server has answered, so it is there again. */
  #reached(): void {
    if (this.failure.value?.code === "UNREACHABLE") this.failure.set(null);
  }

  #failed(error: unknown): void {
    if (this.#isOver) return;
    if (!(error instanceof Refusal)) throw error;
    this.failure.set(error);
  }
}

/** With what a timeline tells of these calls. One that was asked for earlier may show an ended call as running. */
function withFacts(known: ReadonlyMap<string, CallFacts>, tools: readonly ToolSpan[]): ReadonlyMap<string, CallFacts> {
  const facts = new Map(known);
  for (const tool of tools) {
    const before = known.get(tool.call);
    const isOld = tool.endMs === null && before?.endMs != null && before.startMs === tool.startMs;
    if (!isOld) facts.set(tool.call, tool);
  }
  return facts;
}

function replacements(history: History | null): number {
  const marks = history?.marks.filter(({ kind }) => kind === "replaced") ?? [];
  return marks.reduce((sum, { count }) => sum + count, 0);
}

const OUTPUT_MAX = 16_000;

/** An event says only what a running tool has added to its output. */
function withOutput(state: ChatState | null, event: StateEvent["event"]): Partial<ChatState> {
  if (event?.type !== "tool.output" || typeof event["call"] !== "string") return {};
  const call = event["call"];
  const text = `${state?.outputs[call] ?? ""}${String(event["text"] ?? "")}`.slice(-OUTPUT_MAX);
  // Without the half of a character that the cut may leave.
  return { outputs: { ...state?.outputs, [call]: text.replace(/^[\uDC00-\uDFFF]/, "") } };
}
