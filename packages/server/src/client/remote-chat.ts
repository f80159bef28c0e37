import { setTimeout as sleep } from "node:timers/promises";
import type { ApprovalAnswer, Chat, ChatEvent, ChatState, Mode, PromptImage } from "../contract/host.ts";
import type { Item } from "../contract/item.ts";
import type { StateEvent, TextEvent } from "../schemas/events.ts";
import { applyState, applyText, isNewer, isSameSeries, itemEvents } from "./chat-mirror.ts";
import { type HoldfastClient, ServerError } from "./client.ts";
import type { ServerEvent } from "./event-source.ts";

const PAGE_ITEMS = 2000;
const TRIES_MAX = 20;
/** An event and the record of the same thing arrive within this time of each other. */
const MISSED_MS = 500;
const RETRY_MS = 250;
const RETRY_MS_MAX = 5000;

/** A chat in a server. It mirrors the state; leaving it, or losing the connection, changes nothing there. */
export class RemoteChat implements Chat {
  readonly id: string;
  readonly #client: HoldfastClient;
  readonly #onClosed: () => void;
  readonly #listeners = new Set<(event: ChatEvent) => void>();
  readonly #ending = new AbortController();
  readonly #ready = Promise.withResolvers<void>();
  #state: ChatState;
  #answer: string | null = null;
  #version: string | null = null;
  #lastId = "end";
  /** The event that is being applied: some wait for items to be read. */
  #applying: Promise<void> = Promise.resolve();
  /** The last turn whose end the listeners know. */
  #announced = 0;
  #missed: NodeJS.Timeout | undefined;
  /** Called when the mirror shows that a turn has begun, or was filled again. */
  readonly #onBegun = new Set<() => void>();
  #isConnected = true;

  private constructor(client: HoldfastClient, state: ChatState, onClosed: () => void) {
    this.id = state.id;
    this.#client = client;
    this.#state = state;
    this.#onClosed = onClosed;
  }

  /** Mirrors a session that the server has open, and resolves when all of it is here. */
  static async attach(
    client: HoldfastClient,
    state: Omit<ChatState, "items">,
    onClosed: () => void,
  ): Promise<RemoteChat> {
    const { count: _count, ...members } = state as Omit<ChatState, "items"> & { count?: number };
    const chat = new RemoteChat(client, { ...members, live: null, items: [] }, onClosed);
    void chat.#follow();
    await chat.#ready.promise;
    return chat;
  }

  get state(): ChatState {
    return this.#state;
  }

  subscribe(listener: (event: ChatEvent) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  async settled(): Promise<void> {
    const isSettled = (): boolean =>
      this.#ending.signal.aborted || this.#state.status !== "running" || this.#state.asks.length > 0;
    if (isSettled()) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const unsubscribe = this.subscribe(() => isSettled() && resolve());
    this.#ending.signal.addEventListener("abort", () => resolve(), { once: true });
    await promise;
    unsubscribe();
  }

  async prompt(text: string, images: readonly PromptImage[] = []): Promise<"started" | "queued"> {
    const body = { text, images: images.map((image) => ({ ...image })) };
    const call = this.#client.call("startTurn", { params: { id: this.id }, body });
    const { outcome } = await this.#begun(call, (answer) => answer.outcome === "started");
    return outcome;
  }

  /**
   * The answer to a request that may start a turn. The server answers by another connection than the one it reports on:
   * the answer counts when the report has come, or else `settled` would see a chat in which nothing runs yet.
   */
  async #begun<T>(call: Promise<T>, isStarted: (answer: T) => boolean): Promise<T> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const { signal } = this.#ending;
    this.#onBegun.add(resolve);
    signal.addEventListener("abort", () => resolve(), { once: true });
    try {
      const answer = await call;
      if (isStarted(answer) && !signal.aborted) await promise;
      return answer;
    } finally {
      this.#onBegun.delete(resolve);
    }
  }

  async withdraw(queued: string): Promise<void> {
    await this.#client.call("withdrawPrompt", { params: { id: this.id, item: queued } });
  }

  async finish({ processes = "wait" }: { readonly processes?: "wait" | "stop" } = {}): Promise<void> {
    const call = this.#client.call("finishTurn", { params: { id: this.id }, body: { processes } });
    await this.#begun(call, () => true);
  }

  leave(): void {
    this.#inBackground(this.#client.call("leaveTurn", { params: { id: this.id } }));
  }

  async stop(): Promise<void> {
    await this.#client.call("stopTurn", { params: { id: this.id } });
  }

  async resumeQueue(): Promise<void> {
    await this.#client.call("resumeQueue", { params: { id: this.id } });
  }

  async answer(call: string, answer: ApprovalAnswer, reason?: string): Promise<void> {
    const digest = this.#state.asks.find((ask) => ask.call === call)?.digest;
    await this.#client.call("answerPermission", {
      params: { id: this.id },
      body: { call, answer, ...(reason === undefined ? {} : { reason }), ...(digest === undefined ? {} : { digest }) },
    });
  }

  async setModel(model: string): Promise<void> {
    await this.#client.call("changeSession", { params: { id: this.id }, body: { model } });
  }

  setMode(mode: Mode): void {
    this.#inBackground(this.#client.call("changeSession", { params: { id: this.id }, body: { mode } }));
  }

  async compact(): Promise<void> {
    await this.#client.call("compact", { params: { id: this.id } });
  }

  async clear(): Promise<void> {
    await this.#client.call("clear", { params: { id: this.id } });
  }

  async undo(): Promise<void> {
    await this.#client.call("undo", { params: { id: this.id } });
  }

  async rewind(message: string): Promise<string> {
    const { prompt } = await this.#client.call("rewind", { params: { id: this.id }, body: { message } });
    return prompt;
  }

  async rename(title: string): Promise<void> {
    await this.#client.call("changeSession", { params: { id: this.id }, body: { title } });
  }

  /** Ends the connection. The server keeps the session, and its turn goes on. */
  async close(): Promise<void> {
    this.#ending.abort();
    clearTimeout(this.#missed);
    await this.#applying;
    this.#onClosed();
  }

  /** Connects again and again, each time from where it was cut off. */
  async #follow(): Promise<void> {
    let waitMs = RETRY_MS;
    const { signal } = this.#ending;
    while (!signal.aborted) {
      try {
        for await (const event of this.#client.events(this.id, { after: this.#lastId, isBrief: true, signal })) {
          waitMs = RETRY_MS;
          this.#lastId = event.lastId === "" ? "start" : event.lastId;
          const applying = this.#apply(event);
          // The caller that closes the chat waits for this, and has no use for its failure.
          this.#applying = applying.catch(() => {});
          await applying;
        }
        if (signal.aborted) return;
        this.#lost(null);
      } catch (error) {
        if (!(error instanceof Error)) throw error;
        if (isFinal(error)) {
          this.#ready.reject(error);
          this.#fail(error);
          return;
        }
        this.#lost(error);
      }
      await sleep(waitMs, undefined, { signal }).catch(() => {});
      waitMs = Math.min(waitMs * 2, RETRY_MS_MAX);
      await this.#reopen();
    }
  }

  /** A server that was restarted does not have the session open. */
  async #reopen(): Promise<void> {
    if (this.#ending.signal.aborted) return;
    try {
      await this.#client.call("openSession", { params: { id: this.id } });
    } catch (error) {
      if (!(error instanceof ServerError)) throw error;
    }
  }

  async #apply({ name, data }: ServerEvent): Promise<void> {
    const { signal } = this.#ending;
    if (signal.aborted) return;
    switch (name) {
      case "text": {
        const piece = JSON.parse(data) as TextEvent;
        const { state, events } = applyText(this.#state, piece, this.#answer);
        this.#answer = piece.answer;
        this.#show(state, events);
        return;
      }
      case "state":
        await this.#applyState(JSON.parse(data) as StateEvent);
        return;
      case "record":
        this.#notice(JSON.parse(data) as Readonly<Record<string, unknown>>);
        return;
      case "start-over":
        this.#version = null;
        this.#answer = null;
        return;
      case "deleted":
        this.#fail(
          new ServerError({
            code: "SESSION_NOT_FOUND",
            status: 404,
            detail: "The session was deleted. It is in the trash.",
          }),
        );
        this.#ending.abort();
        return;
      default:
        return;
    }
  }

  async #applyState(event: StateEvent): Promise<void> {
    if (!event.whole) {
      const { items, ...rest } = event;
      const isNew = items !== undefined && isNewer(event.version, this.#version);
      if (isNew && !isSameSeries(event.version, this.#version)) return;
      if (isNew) this.#version = event.version;
      const { state, events } = applyState(this.#state, isNew ? event : (rest as StateEvent));
      this.#announced = Math.max(this.#announced, event.turn ?? 0);
      this.#show(state, events);
      return;
    }
    const before = this.#state;
    if (this.#version !== event.version) await this.#readItems();
    const { state } = applyState(this.#state, event);
    const added = itemEvents(before.items, this.#state.items.slice(-100));
    const events: ChatEvent[] = [...added, { type: "changed" }];
    if (!this.#isConnected) {
      this.#isConnected = true;
      events.push({ type: "notice", level: "info", text: "Connected to the server again. Nothing was lost." });
    }
    this.#show(state, this.#version === null ? [] : events);
    // It was connected again: whatever was started meanwhile is in it, or has ended.
    this.#tellBegun();
    this.#ready.resolve();
  }

  /** Reads all items. What changes meanwhile comes as events, and counts from the version that was read. */
  async #readItems(): Promise<void> {
    for (let tries = 0; tries < TRIES_MAX && !this.#ending.signal.aborted; tries++) {
      const items: Item[] = [];
      let version: string | null = null;
      for (;;) {
        const query = { from: items.length, limit: PAGE_ITEMS };
        const page = await this.#client.call("getTranscript", { params: { id: this.id }, query });
        if (items.length > 0 && page.version !== version) break;
        version = page.version;
        items.push(...(page.items as Item[]));
        if (items.length < page.count) continue;
        this.#version = version;
        this.#state = { ...this.#state, items };
        return;
      }
    }
  }

  /** The end of a turn that was missed is known from its record alone. Otherwise the event comes with the record. */
  #notice({ kind, turn, outcome, by }: Readonly<Record<string, unknown>>): void {
    if (kind !== "turn.ended" || typeof turn !== "number" || turn <= this.#announced) return;
    clearTimeout(this.#missed);
    this.#missed = setTimeout(() => {
      if (turn <= this.#announced) return;
      this.#announced = turn;
      const known = outcome === "aborted" || outcome === "failed" ? outcome : "completed";
      const who = typeof by === "string" ? { by } : {};
      this.#tellBegun();
      this.#emit({ type: "turn.ended", outcome: known, denied: 0, ...who });
    }, MISSED_MS);
  }

  #lost(error: Error | null): void {
    if (!this.#isConnected) return;
    this.#isConnected = false;
    const why = error ? ` (${error.message})` : "";
    const text = `The connection to the server was lost${why}. A running turn goes on there. Connecting again…`;
    this.#emit({ type: "notice", level: "warning", text });
  }

  #fail(error: Error & { readonly code?: string }): void {
    const failure = { code: error.code ?? "UNEXPECTED", message: error.message };
    this.#show({ ...this.#state, status: "idle", live: null, failure }, [{ type: "changed" }]);
    this.#tellBegun();
  }

  #tellBegun(): void {
    for (const tell of this.#onBegun) tell();
  }

  #show(state: ChatState, events: readonly ChatEvent[]): void {
    const wasRunning = this.#state.status === "running";
    this.#state = state;
    // A short turn may be over before it was seen to run. The end of one that was seen says nothing about the next.
    if (!wasRunning && (state.status === "running" || events.some(({ type }) => type === "turn.ended")))
      this.#tellBegun();
    for (const event of events) this.#emit(event);
  }

  #inBackground(work: Promise<unknown>): void {
    work.catch((error: unknown) => {
      const text = error instanceof Error ? error.message : String(error);
      this.#emit({ type: "notice", level: "warning", text });
    });
  }

  #emit(event: ChatEvent): void {
    for (const listener of [...this.#listeners]) {
      try {
        listener(event);
      } catch (error) {
        process.emitWarning(error instanceof Error ? error : String(error));
      }
    }
  }
}

/** Trying again would not help. */
function isFinal(error: Error): boolean {
  return error instanceof ServerError && error.status >= 400 && error.status < 500;
}
