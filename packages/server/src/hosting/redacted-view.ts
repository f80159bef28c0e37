import { type Account, credentials, HeldBack, type JournalRecord } from "holdfast";
import type { Chat, ChatEvent, ChatState, LiveAnswer, PermissionAsk } from "../contract/host.ts";
import type { Item } from "../contract/item.ts";
import type { ServedHost } from "../contract/served-host.ts";
import { ChatFeed } from "../events/chat-feed.ts";
import type { FollowParts } from "../events/follow-session.ts";
import type { SentRecord } from "../events/record-hub.ts";
import type { Hosting } from "./hosting.ts";

/** What reading a session needs of the server. */
export type ReadingView = Pick<Hosting, "host" | "feed" | "followed" | "reading" | "isStopping">;

/**
 * The sessions of a server for readers who may not see credentials. They are replaced in records, items and the state
 * before anything is made of those: a diff, a timeline or an excerpt could cut one in two, and no part of it would be
 * recognized. Of a text that still grows, only what cannot be the start of a credential is shown.
 */
export function redactedView(hosting: Hosting): ReadingView {
  const { host } = hosting;
  const items = new WeakMap<Item, Item>();
  const cleanItem = (item: Item): Item => {
    const known = items.get(item) ?? redactItem(host, item);
    items.set(item, known);
    return known;
  };
  const sent = new WeakMap<SentRecord, SentRecord>();
  const cleanRecord = (record: SentRecord): SentRecord => {
    const known = sent.get(record) ?? redactSent(host, record);
    sent.set(record, known);
    return known;
  };
  const feeds = new WeakMap<ChatFeed, ChatFeed>();
  const feed = (id: string): ChatFeed | null => {
    const open = hosting.feed(id);
    if (!open) return null;
    const known = feeds.get(open);
    if (known) return known;
    const made = new ChatFeed(redactChat(host, open.chat, cleanItem));
    open.onClose(() => made.close());
    feeds.set(open, made);
    return made;
  };
  return {
    host: redactHost(host, cleanItem),
    get isStopping() {
      return hosting.isStopping;
    },
    feed,
    reading: (id) => hosting.reading(id),
    followed: async (id) => {
      const { hub, watch, release } = await hosting.followed(id);
      return { hub: redactHub(hub, cleanRecord), feed: () => feed(id), watch, release };
    },
  };
}

function redactHost(host: ServedHost, cleanItem: (item: Item) => Item): ServedHost {
  const sessions = new Proxy(host.sessions, {
    get: (store, name) => {
      if (name === "history")
        return async function* (...args: Parameters<typeof store.history>): AsyncGenerator<JournalRecord> {
          for await (const record of store.history(...args)) yield redactRecord(host, record);
        };
      const member: unknown = Reflect.get(store, name, store);
      return typeof member === "function" ? member.bind(store) : member;
    },
  });
  return {
    ...host,
    sessions,
    items: (reading) => host.items(reading).map(cleanItem),
    queue: (reading) => host.redact(host.queue(reading)),
    account: async (reading) => redactAccount(host, await host.account(reading)),
    interruption: (reading, account) => redactInterruption(host, host.interruption(reading, account)),
  };
}

function redactHub(hub: FollowParts["hub"], clean: (record: SentRecord) => SentRecord): FollowParts["hub"] {
  return {
    get cursor() {
      return hub.cursor;
    },
    after: async function* (position, signal) {
      const records = hub.after(position, signal);
      try {
        for (let next = await records.next(); ; next = await records.next()) {
          if (next.done) return next.value;
          yield clean(next.value);
        }
      } finally {
        await records.return("stopped");
      }
    },
    tail: (position, signal, take) => hub.tail(position, signal, (record) => take(clean(record))),
    since: (position) => hub.since(position)?.map(clean) ?? null,
  };
}

function redactSent(host: ServedHost, { seq, cursor, full, brief }: SentRecord): SentRecord {
  const cleaned = (json: string): string => JSON.stringify(redactRecord(host, JSON.parse(json) as JournalRecord));
  return { seq, cursor, full: cleaned(full), brief: cleaned(brief), events: { full: null, brief: null } };
}

/** Drafts are pieces of a text, which its message has as a whole. */
function redactRecord(host: ServedHost, record: JournalRecord): JournalRecord {
  const { parts: _parts, draft: _draft, ...rest } = record;
  return redactAnswer(host, rest as JournalRecord);
}

/** Anything with a title, which may be the beginning of a prompt. */
export function redactAnswer<T extends object>(host: ServedHost, answer: T): T {
  const clean = host.redact(answer);
  return "title" in clean && typeof clean.title === "string" ? { ...clean, title: redactCut(clean.title) } : clean;
}

function redactItem(host: ServedHost, item: Item): Item {
  const clean = host.redact(item);
  return "incomplete" in clean && clean.incomplete ? { ...clean, text: redactCut(clean.text) } : clean;
}

function redactInterruption(host: ServedHost, found: ChatState["interruption"]): ChatState["interruption"] {
  if (!found) return null;
  const { prompt, text, words } = found;
  return { ...host.redact(found), prompt: redactCut(prompt), text: redactCut(text), words: redactCut(words) };
}

/** An error in words is cut. */
function redactAccount(host: ServedHost, account: Account): Account {
  const clean = host.redact(account);
  return { ...clean, words: { ...clean.words, status: redactCut(account.words.status) } };
}

/** The shown form of a call has marks in place of line ends, which hide a credential of several lines. */
function redactAsk(host: ServedHost, ask: PermissionAsk): PermissionAsk {
  return { ...host.redact(ask), summary: redactCut(ask.summary), parts: [] };
}

/** A text that was cut off may end with the start of a credential. */
function redactCut(text: string): string {
  const held = new HeldBack(credentials);
  return held.push(text) + held.end();
}

function redactChat(host: ServedHost, chat: Chat, cleanItem: (item: Item) => Item): Chat {
  const lists = new WeakMap<readonly Item[], readonly Item[]>();
  const [text, reasoning] = [new GrowingText(), new GrowingText()];
  const growing = new Map<string, GrowingText>();
  const grown = (key: string): GrowingText => {
    const known = growing.get(key) ?? new GrowingText();
    growing.set(key, known);
    return known;
  };
  const clean = ({ items, live, outputs, asks, title, account, interruption, ...rest }: ChatState): ChatState => {
    const list = lists.get(items) ?? items.map(cleanItem);
    lists.set(items, list);
    const cleanLive: LiveAnswer | null = live && {
      text: text.show(live.text),
      reasoning: reasoning.show(live.reasoning),
      calls: live.calls.map((call) => ({ ...call, input: grown(`input ${call.id}`).show(call.input) })),
    };
    // The end of a long output may begin in the middle of a credential: nothing is added to what is shown.
    const shown = Object.entries(outputs).map(([call, output]) => [call, grown(`output ${call}`).extend(output)]);
    if (!live && shown.length === 0) growing.clear();
    return {
      ...host.redact(rest),
      items: list,
      live: cleanLive,
      outputs: Object.fromEntries(shown),
      asks: asks.map((ask) => redactAsk(host, ask)),
      title: redactCut(title),
      account: redactAccount(host, account),
      interruption: redactInterruption(host, interruption),
    };
  };
  let [seen, state] = [chat.state, clean(chat.state)];
  // A follower can only look.
  return {
    id: chat.id,
    get state() {
      if (chat.state !== seen) [seen, state] = [chat.state, clean(chat.state)];
      return state;
    },
    subscribe: (listener: (event: ChatEvent) => void) =>
      chat.subscribe((event) => {
        // Pieces of texts that the state has as a whole.
        if (event.type === "text" || event.type === "reasoning" || event.type === "tool.output") return;
        if (event.type === "permission.asked") listener({ ...event, ask: redactAsk(host, event.ask) });
        else listener(host.redact(event));
      }),
  } as Chat;
}

/** A text that grows, without what may be the start of a credential. */
class GrowingText {
  #held = new HeldBack(credentials);
  #seen = "";
  #shown = "";

  show(text: string): string {
    if (!text.startsWith(this.#seen)) [this.#held, this.#seen, this.#shown] = [new HeldBack(credentials), "", ""];
    return this.extend(text);
  }

  /** Leaves it as it is if the text is another one. */
  extend(text: string): string {
    if (!text.startsWith(this.#seen)) return this.#shown;
    this.#shown += this.#held.push(text.slice(this.#seen.length));
    this.#seen = text;
    return this.#shown;
  }
}
