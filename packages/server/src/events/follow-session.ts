import { isHoldfastError } from "holdfast";
import type { ChatFeed, Piece } from "./chat-feed.ts";
import { type EventStream, eventText } from "./event-stream.ts";
import { type RecordHub, type SentRecord, START } from "./record-hub.ts";

export interface FollowParts {
  readonly hub: Pick<RecordHub, "cursor" | "after" | "tail" | "since">;
  /** The feed while this server has the session open. */
  feed(): ChatFeed | null;
  /** Calls the listener when that changes. */
  watch(listener: () => void): () => void;
}

/** Where a client is: the last record it has, and how much of the live answer. */
export interface Position {
  readonly cursor: string;
  readonly answer: string | null;
  readonly characters: number;
}

const ID = /^(0|\d+-[0-9a-f]+)(?:~([\w-]+)\.(\d+))?$/;

/** Reads an event id; null if it is none. */
export function parseEventId(id: string): Position | null {
  const [, cursor, answer, characters] = ID.exec(id) ?? [];
  if (cursor === undefined) return null;
  return { cursor, answer: answer ?? null, characters: Number(characters ?? 0) };
}

/** Sends a session to one client until either of them ends. Never throws because of the client. */
export async function followSession(
  stream: EventStream,
  { hub, feed, watch }: FollowParts,
  { position, isBrief }: { readonly position: Position; readonly isBrief: boolean },
): Promise<void> {
  const live = new LiveSender(stream, position);
  const attach = (): void => live.attach(feed());
  const unwatch = watch(attach);
  attach();
  try {
    for (;;) {
      const ended = await sendRecords(stream, hub, live, isBrief);
      if (ended === "current")
        await hub.tail(live.cursor, stream.signal, (record) => {
          live.record(record, isBrief ? "brief" : "full");
          return stream.hasRoom;
        });
      else if (ended !== "start over") {
        if (ended === "deleted")
          stream.send("deleted", null, JSON.stringify({ detail: "The session was deleted. It is in the trash." }));
        return;
      }
      await stream.room();
    }
  } finally {
    unwatch();
    live.detach();
    stream.end();
  }
}

async function sendRecords(
  stream: EventStream,
  hub: FollowParts["hub"],
  live: LiveSender,
  isBrief: boolean,
): Promise<"current" | "deleted" | "stopped" | "start over"> {
  const records = hub.after(live.cursor, stream.signal);
  try {
    for (;;) {
      const next = await records.next();
      if (next.done) return next.value;
      live.record(next.value, isBrief ? "brief" : "full");
      await stream.room();
    }
  } catch (error) {
    if (!isHoldfastError(error, "CURSOR_STALE") || live.cursor === START) throw error;
    const detail =
      "Your last event is no longer in the journal, for example because its end was lost in a power cut. Forget what you have: everything follows from the beginning.";
    live.startOver();
    // An empty id makes a browser forget its last one.
    stream.send("start-over", "", JSON.stringify({ code: "CURSOR_STALE", detail }));
    live.whole();
    return "start over";
  } finally {
    await records.return("stopped");
  }
}

/**
 * Sends the state and the live answer. What does not fit is left out, and the whole state follows when there is room.
 */
class LiveSender {
  cursor: string;
  readonly #stream: EventStream;
  #feed: ChatFeed | null = null;
  #unfollow: (() => void) | null = null;
  #answer: string | null;
  #characters: number;
  #isBehind = false;

  constructor(stream: EventStream, { cursor, answer, characters }: Position) {
    this.#stream = stream;
    this.cursor = cursor;
    this.#answer = answer;
    this.#characters = characters;
  }

  /** Where the client is: the last record, and, while an answer is streamed, the place in it. */
  get id(): string {
    const isLive = this.#answer !== null && this.#feed !== null && this.#feed.chat.state.live !== null;
    return isLive ? `${this.cursor}~${this.#answer}.${this.#characters}` : this.cursor;
  }

  record(record: SentRecord, form: "full" | "brief"): void {
    this.cursor = record.cursor;
    const { id } = this;
    if (id !== record.cursor) {
      this.#stream.send("record", id, record[form]);
      return;
    }
    record.events[form] ??= eventText("record", id, record[form]);
    this.#stream.sendText(record.events[form]);
  }

  attach(feed: ChatFeed | null): void {
    if (feed === this.#feed) return;
    this.#unfollow?.();
    this.#feed = feed;
    this.#unfollow = null;
    if (feed === null) return;
    this.#unfollow = feed.follow({
      state: (json) => this.#state(json),
      text: (piece) => this.#text(piece),
      closed: () => {
        this.#feed = null;
        this.#stream.send("closed", null, JSON.stringify({ detail: "The server has closed the session." }));
      },
    });
    this.whole();
  }

  detach(): void {
    this.#unfollow?.();
    this.#feed = null;
  }

  startOver(): void {
    this.cursor = START;
    this.#answer = null;
    this.#characters = 0;
  }

  /** Everything that is not a record, as it is now. */
  whole(): void {
    if (!this.#feed) return;
    this.#isBehind = false;
    this.#stream.send("state", null, this.#feed.whole());
    for (const piece of this.#feed.textAfter(this.#answer, this.#characters)) this.#sendText(piece);
  }

  #state(json: string): void {
    if (this.#mayPush()) this.#stream.send("state", null, json);
  }

  #text(piece: Piece): void {
    if (this.#mayPush()) this.#sendText(piece);
  }

  #sendText({ answer, end, json }: Piece): void {
    this.#answer = answer;
    this.#characters = end;
    this.#stream.send("text", this.id, json);
  }

  #mayPush(): boolean {
    if (this.#isBehind) return false;
    if (this.#stream.hasRoom) return true;
    this.#isBehind = true;
    this.#stream.onDrain(() => this.whole());
    return false;
  }
}
