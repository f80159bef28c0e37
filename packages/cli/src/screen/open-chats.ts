import { defined } from "../defined.ts";
import type { Chat, ChatEvent, ChatState, Host } from "../host/host.ts";
import { chatName } from "./lines/labels.ts";
import { survivingPid } from "./panels/panel.ts";

/** The open chats, one of them on the screen. All of them may be running: each records into its own session. */
export class OpenChats {
  readonly #host: Host;
  readonly #open = new Map<string, { readonly chat: Chat; readonly unsubscribe: () => void }>();
  readonly #closing = new Map<string, Promise<void>>();
  readonly #startedAt = new Map<string, number>();
  readonly #running = new Set<string>();
  readonly #lastWord = new Map<string, { readonly at: number; readonly live: ChatState["live"] }>();
  readonly #elsewhere = new Map<string, string>();
  readonly #heard: (event: ChatEvent, current: boolean) => void;
  readonly #now: () => number;
  #current: Chat | null = null;

  constructor(host: Host, heard: (event: ChatEvent, current: boolean) => void, now: () => number) {
    this.#host = host;
    this.#heard = heard;
    this.#now = now;
  }

  get current(): Chat | null {
    return this.#current;
  }

  get state(): ChatState | null {
    return this.#current?.state ?? null;
  }

  /** How long the turn of this chat has been running. */
  elapsedMs(id: string): number {
    const startedAt = this.#startedAt.get(id);
    return startedAt === undefined ? 0 : this.#now() - startedAt;
  }

  /** How long this chat has been silent: no event and no part of an answer. */
  silentMs({ id, live }: ChatState): number {
    const last = this.#lastWord.get(id);
    if (last !== undefined && last.live === live) return this.#now() - last.at;
    this.#lastWord.set(id, { at: this.#now(), live });
    return 0;
  }

  /** The latest news from other sessions; empty if there is none. */
  get elsewhere(): string {
    return [...this.#elsewhere.values()].at(-1) ?? "";
  }

  /** Shows a chat. The previous one stays open and keeps running. */
  show(chat: Chat): void {
    const left = this.#current?.state;
    // It keeps waiting, and would not be mentioned again.
    if (left !== undefined && left.asks.length > 0) this.#elsewhere.set(left.id, asksWords(left));
    this.#current = chat;
    this.#elsewhere.delete(chat.id);
    if (chat.state.status === "running" && !this.#startedAt.has(chat.id)) this.#startedAt.set(chat.id, this.#now());
    if (this.#open.has(chat.id)) return;
    const unsubscribe = chat.subscribe((event) => this.#hear(chat, event));
    this.#open.set(chat.id, { chat, unsubscribe });
  }

  /** Closes an idle chat once another is on the screen, so that other processes can use its session. */
  async closeIfIdle(chat: Chat): Promise<void> {
    const { status, queue } = chat.state;
    if (chat === this.#current || status === "running" || status === "waiting" || queue.length > 0) return;
    this.#open.get(chat.id)?.unsubscribe();
    this.#open.delete(chat.id);
    const closing = chat.close().finally(() => this.#closing.delete(chat.id));
    this.#closing.set(chat.id, closing);
    await closing;
  }

  /** The chat of a session, opened if necessary. */
  async open(id: string, model?: string): Promise<Chat> {
    await this.#closing.get(id);
    return this.#open.get(id)?.chat ?? (await this.#host.open(id, defined({ model })));
  }

  /** The chats that are working on a turn. */
  get atWork(): readonly Chat[] {
    return [...this.#open.values()].map(({ chat }) => chat).filter(({ state }) => state.status === "running");
  }

  release(): void {
    for (const { unsubscribe } of this.#open.values()) unsubscribe();
    this.#open.clear();
  }

  #hear(chat: Chat, event: ChatEvent): void {
    const { status } = chat.state;
    const isRunning = status === "running";
    if (event.type === "turn.started" || (isRunning && !this.#running.has(chat.id)))
      this.#startedAt.set(chat.id, this.#now());
    if (isRunning) this.#running.add(chat.id);
    // A turn that continues after an approval is the same turn.
    else if (status !== "waiting") this.#running.delete(chat.id);
    this.#lastWord.set(chat.id, { at: this.#now(), live: chat.state.live });
    const current = chat === this.#current;
    if (!current) {
      const words = elsewhereWords(chat.state, event);
      if (words !== null) {
        this.#elsewhere.delete(chat.id);
        this.#elsewhere.set(chat.id, words);
      }
    }
    this.#heard(event, current);
  }
}

function asksWords(state: ChatState): string {
  return `"${chatName(state, 24)}" needs approval`;
}

function elsewhereWords(state: ChatState, event: ChatEvent): string | null {
  const name = `"${chatName(state, 24)}"`;
  if (event.type === "permission.asked") return asksWords(state);
  if (event.type !== "turn.ended") return null;
  return event.outcome === "failed"
    ? `${name} failed`
    : event.outcome === "waiting"
      ? `${name} is waiting`
      : `${name} is done`;
}

/** Continues what an opened chat left unfinished, except for what a person must decide. */
export async function continueUnfinished(chat: Chat, processes?: "wait" | "stop"): Promise<void> {
  const { status, interruption, queue } = chat.state;
  // What to do with a process that still runs is for the person to say.
  const isAnswered = processes !== undefined || survivingPid(interruption) === undefined;
  if (status === "interrupted" && isAnswered) await chat.finish(defined({ processes }));
  else if (status === "idle" && queue.length > 0) await chat.resumeQueue();
}
