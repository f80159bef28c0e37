import type { JournalRecord, Reading } from "holdfast";
import { cursorOf } from "holdfast/internal";
import type { ServedHost } from "../contract/served-host.ts";
import { TimelineFold } from "./timeline.ts";
import { UsageFold } from "./usage.ts";

/** What the records of a session add up to, over all its epochs. */
export interface SessionHistory {
  readonly timeline: TimelineFold;
  readonly usage: UsageFold;
}

/** The sessions, and their newest records in memory. */
export interface Followable {
  readonly host: ServedHost;
  followed(id: string): Promise<{
    readonly hub: {
      since(cursor: string): readonly { readonly cursor: string; readonly full: string }[] | null;
    };
    release(): void;
  }>;
}

/** How much is kept in memory: about 100 bytes for each happening. */
const HAPPENINGS_MAX = 300_000;
const SESSIONS_MAX = 64;
const REPLACED_MAX = 2;

/**
 * The histories of the sessions that were looked at last. Each journal is read from its beginning once; after that,
 * only what is new. Requests at the same time share the work.
 */
export class Histories {
  readonly #hosting: Followable;
  /** The one that was used last comes last. */
  readonly #known = new Map<string, SessionHistory>();
  readonly #underWay = new Map<string, Promise<SessionHistory>>();
  /** Conversations that were replaced, by session and last record. They do not change. */
  readonly #replaced = new Map<string, Promise<Reading<unknown>>>();

  constructor(hosting: Followable) {
    this.#hosting = hosting;
  }

  /** Throws SESSION_NOT_FOUND. */
  of(id: string): Promise<SessionHistory> {
    const underWay = this.#underWay.get(id);
    if (underWay) return underWay;
    const work = this.#upToDate(id).finally(() => this.#underWay.delete(id));
    this.#underWay.set(id, work);
    return work;
  }

  /** A conversation that was replaced, by its last record; null if there is none. */
  async replaced(id: string, until: number): Promise<Reading<unknown> | null> {
    const { timeline } = await this.of(id);
    if (!timeline.replaced.some((one) => one.until === until)) return null;
    const key = `${id} ${until}`;
    const known = this.#replaced.get(key) ?? this.#hosting.host.sessions.read(id, { until });
    this.#replaced.delete(key);
    this.#replaced.set(key, known);
    known.catch(() => this.#replaced.delete(key));
    const [oldest] = this.#replaced.keys();
    if (this.#replaced.size > REPLACED_MAX) this.#replaced.delete(oldest!);
    return known;
  }

  async #upToDate(id: string): Promise<SessionHistory> {
    const known = this.#known.get(id);
    this.#known.delete(id);
    const history = known && (await this.#continued(id, known)) ? known : await this.#fromStart(id);
    this.#known.set(id, history);
    this.#forgetOldest();
    return history;
  }

  /** False if its last record is no longer in the journal. */
  async #continued(id: string, { timeline, usage }: SessionHistory): Promise<boolean> {
    const { last } = timeline;
    if (!last) return false;
    const add = (record: JournalRecord, cursor: string): void => {
      timeline.add(record, cursor);
      usage.add(record);
    };
    const { hub, release } = await this.#hosting.followed(id);
    release();
    const inMemory = hub.since(last.cursor);
    if (inMemory) {
      for (const { full, cursor } of inMemory) add(JSON.parse(full) as JournalRecord, cursor);
      return true;
    }
    let isThere = false;
    for await (const record of this.#hosting.host.sessions.history(id, last.seq)) {
      if (!isThere) {
        if (cursorOf(record) !== last.cursor) return false;
        isThere = true;
      } else add(record, cursorOf(record));
    }
    return isThere;
  }

  async #fromStart(id: string): Promise<SessionHistory> {
    const timeline = new TimelineFold((message, dialect) => this.#hosting.host.said(message, dialect));
    const history = { timeline, usage: new UsageFold() };
    for await (const record of this.#hosting.host.sessions.history(id)) {
      history.timeline.add(record);
      history.usage.add(record);
    }
    return history;
  }

  #forgetOldest(): void {
    let size = [...this.#known.values()].reduce((sum, { timeline }) => sum + timeline.size, 0);
    for (const [id, { timeline }] of this.#known) {
      if (this.#known.size === 1 || (size <= HAPPENINGS_MAX && this.#known.size <= SESSIONS_MAX)) return;
      this.#known.delete(id);
      size -= timeline.size;
    }
  }
}
