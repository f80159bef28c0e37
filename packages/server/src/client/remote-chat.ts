import { setTimeout as sleep } from "node:timers/promises";
import type { ApprovalAnswer, Chat, ChatEvent, ChatState, Mode, PromptImage } from "../contract/host.ts";
import type { Item } from "../contract/item.ts";
import { POSITION, type StateEvent, type TextEvent } from "../schemas/events.ts";
import type { OperationId } from "../schemas/operations.ts";
import { applyState, applyText, isNewer, isSameSeries, itemEvents } from "./chat-mirror.ts";
import { type CallInput, type CallOutput, type HoldfastClient, ServerError } from "./client.ts";
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
  /** How much of what the server announces is shown here. */
  #position: string | null = null;
  /** How often everything was shown again. */
  #wholes = 0;
  /** Called after each change of what is shown. */
  readonly #onShown = new Set<() => void>();
  /** What was called without waiting for it. */
  #unawaited: Promise<unknown> = Promise.resolve();
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
    await this.#until(() => !this.#state.isBusy || this.#state.asks.length > 0);
  }

  async prompt(text: string, images: readonly PromptImage[] = [], key?: string): Promise<"started" | "queued"> {
    const body = { text, images: images.map((image) => ({ ...image })), ...(key === undefined ? {} : { key }) };
    return (await this.#call("startTurn", { params: { id: this.id }, body })).outcome;
  }

  async withdraw(queued: string): Promise<void> {
    await this.#call("withdrawPrompt", { params: { id: this.id, item: queued } });
  }

  async finish({ processes = "wait" }: { readonly processes?: "wait" | "stop" } = {}): Promise<void> {
    await this.#call("finishTurn", { params: { id: this.id }, body: { processes } });
  }

  leave(): void {
    this.#inBackground(this.#call("leaveTurn", { params: { id: this.id } }));
  }

  async stop(): Promise<void> {
    await this.#call("stopTurn", { params: { id: this.id } });
  }

  async resumeQueue(): Promise<void> {
    await this.#call("resumeQueue", { params: { id: this.id } });
  }

  async answer(call: string, answer: ApprovalAnswer, reason?: string): Promise<void> {
    const digest = this.#state.asks.find((ask) => ask.call === call)?.digest;
    await this.#call("answerPermission", {
      params: { id: this.id },
      body: { call, answer, ...(reason === undefined ? {} : { reason }), ...(digest === undefined ? {} : { digest }) },
    });
  }

  async setModel(model: string): Promise<void> {
    await this.#call("changeSession", { params: { id: this.id }, body: { model } });
  }

  setMode(mode: Mode): void {
    this.#inBackground(this.#call("changeSession", { params: { id: this.id }, body: { mode } }));
  }

  async compact(): Promise<void> {
    await this.#call("compact", { params: { id: this.id } });
  }

  async clear(): Promise<void> {
    await this.#call("clear", { params: { id: this.id } });
  }

  async undo(): Promise<void> {
    await this.#call("undo", { params: { id: this.id } });
  }

  async rewind(message: string): Promise<string> {
    return (await this.#call("rewind", { params: { id: this.id }, body: { message } })).prompt;
  }

  async rename(title: string): Promise<void> {
    await this.#call("changeSession", { params: { id: this.id }, body: { title } });
  }

  /**
   * Calls the server. It answers by another connection than the one it reports on: the answer, or the refusal, counts
   * when the mirror shows what the request did. Calls come after those that nobody waited for.
   */
  async #call<Id extends OperationId>(id: Id, input: CallInput<Id>): Promise<CallOutput<Id>> {
    await this.#unawaited;
    if (this.#ending.signal.aborted)
      throw new ServerError({ code: "SESSION_CLOSED", status: 0, detail: "This chat is closed. Nothing was sent." });
    let position: string | null = null;
    const wholes = this.#wholes;
    try {
      return await this.#client.call(id, input, (headers) => {
        position = (headers[POSITION] as string | undefined) ?? null;
      });
    } finally {
      const wanted = position;
      // After the server was restarted, or has opened the session again, the whole state shows it.
      if (wanted !== null)
        await this.#until(
          () => !isNewer(wanted, this.#position) || (this.#wholes > wholes && !isSameSeries(wanted, this.#position)),
        );
    }
  }

  /** Also resolves when the chat is closed, or the server cannot show it any more. */
  async #until(isSo: () => boolean): Promise<void> {
    const { signal } = this.#ending;
    const isOver = (): boolean => signal.aborted || isSo();
    if (isOver()) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const look = (): void => {
      if (isOver()) resolve();
    };
    this.#onShown.add(look);
    signal.addEventListener("abort", look, { once: true });
    await promise;
    this.#onShown.delete(look);
    signal.removeEventListener("abort", look);
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
        return;
      default:
        return;
    }
  }

  async #applyState(event: StateEvent): Promise<void> {
    if (!event.whole) {
      const { items, ...rest } = event;
      const isNew = items !== undefined && isNewer(event.version, this.#version);
      if (isNew && !isSameSeries(event.version, this.#version)) return this.#reach(event);
      if (isNew) this.#version = event.version;
      const { state, events } = applyState(this.#state, isNew ? event : (rest as StateEvent));
      this.#announced = Math.max(this.#announced, event.turn ?? 0);
      this.#show(state, events);
      this.#reach(event);
      return;
    }
    const before = this.#state;
    if (this.#version !== event.version) await this.#readItems();
    const { state } = applyState(this.#state, event);
    const added = itemEvents(before.items, this.#state.items.slice(-100));
    // Questions that were asked while there was no connection. Those that were answered meanwhile are not in the state.
    const known = new Set(before.asks.map(({ digest }) => digest));
    const asked = state.asks.filter(({ digest }) => !known.has(digest));
    const asking = asked.map((ask): ChatEvent => ({ type: "permission.asked", ask }));
    const events: ChatEvent[] = [...added, { type: "changed" }, ...asking];
    if (!this.#isConnected) {
      this.#isConnected = true;
      events.push({ type: "notice", level: "info", text: "Connected to the server again. Nothing was lost." });
    }
    this.#show(state, this.#version === null ? [] : events);
    this.#wholes += 1;
    this.#reach(event);
    this.#ready.resolve();
  }

  #reach({ position }: StateEvent): void {
    this.#position = position;
    for (const look of [...this.#onShown]) look();
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
    this.#show({ ...this.#state, status: "idle", isBusy: false, asks: [], live: null, failure }, [{ type: "changed" }]);
    this.#ending.abort();
    // It can be opened again.
    this.#onClosed();
  }

  #show(state: ChatState, events: readonly ChatEvent[]): void {
    this.#state = state;
    for (const event of events) this.#emit(event);
  }

  #inBackground(work: Promise<unknown>): void {
    this.#unawaited = work.catch((error: unknown) => {
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

/** Trying again would not help. The server may come back where something else answers now, or elsewhere. */
function isFinal(error: Error): boolean {
  if (error instanceof ServerError && /^SERVER_(?:UNPROVEN|UNKNOWN)$/.test(error.code)) return false;
  return error instanceof ServerError && error.status >= 400 && error.status < 500;
}
