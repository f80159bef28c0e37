import { credentials } from "holdfast";
import {
  type Base,
  excerptOf,
  IndexFailure,
  nodeDisk,
  openBase,
  patiently,
  removeDatabase,
  TEXT_CHARS_MAX,
  type TextChange,
  type TextFound,
  type TextMark,
  wordsOf,
} from "holdfast/internal";
import type { FoundSession } from "../diagnosis/sessions.ts";
import type { Door } from "../files/door.ts";
import { glance, readWhole, type SessionFacts } from "./look.ts";
import { type Mark, OverviewTable, SCHEMA, type SessionOverview } from "./tables.ts";

/**
 * What is known of the sessions of all agents: a list, and the words in them. It is derived, and brought up to date
 * before each use: only sessions whose files have changed are read. Nothing that looks like a credential is in it.
 */

export interface RefreshOptions {
  /** Whether all of each session is read, for a search; otherwise only what a list needs. */
  readonly isWhole: boolean;
  readonly run: Door;
  /** Agents whose sessions could not all be found: what is known of the others stays. */
  readonly incomplete?: ReadonlySet<string>;
  readonly onProgress?: (done: number, total: number) => void;
  /** Nobody waits for it any more: what was read until then stays. */
  readonly isOver?: () => boolean;
}

export interface IndexHit {
  readonly session: SessionOverview;
  /** The words around the hit, on one line. */
  readonly excerpt: string;
}

const PATIENCE_MS = 30_000;
const BATCH_CHARS = 256 * 1024;
const BATCH_TEXTS = 1_000;
const ROWS_AT_ONCE = 100;
const HITS_PER_PAGE = 20;
/** Titles and prompts are shown on one line. */
const TITLE_CHARS_MAX = 1_000;

/** Nobody waits any more, or another process indexes the same session. */
class StopReading extends Error {}

export class SessionIndex {
  readonly #base: Base;
  readonly #table: OverviewTable;

  private constructor(base: Base) {
    this.#base = base;
    this.#table = new OverviewTable(base);
  }

  /**
   * Runs `work` on the index in this file, which is made if there is none, and again on a new one if it is damaged. In
   * memory, if there is no path or the file cannot be written. Throws IndexFailure if another process keeps it locked.
   */
  static async use<T>(path: string | null, work: (index: SessionIndex) => Promise<T>): Promise<T> {
    for (let place = path, tries = 1; ; tries++) {
      const base = await openBase(place, { disk: nodeDisk, patienceMs: PATIENCE_MS, schema: SCHEMA });
      try {
        return await work(new SessionIndex(base));
      } catch (error) {
        if (!(error instanceof IndexFailure) || error.why === "busy" || !base.isFile) throw error;
        // A damaged one is built again where it was; on a full disk, in memory.
        if (place !== null && base.isInPlace()) removeDatabase(nodeDisk, place);
        if (error.why === "place" || tries > 1) place = null;
      } finally {
        base.close();
      }
    }
  }

  /** Reads what has changed since the last time, the newest first. */
  async refresh(found: Iterable<FoundSession>, options: RefreshOptions): Promise<void> {
    const { isWhole, run, incomplete, onProgress, isOver } = options;
    const marks = await this.#ask(() => this.#table.marks());
    const stale: StaleSession[] = [];
    for (const each of found) {
      const state = stateOf(each, run);
      const mark = marks.get(state.key);
      if (!isFresh(mark, state.fingerprint, isWhole) && mark?.agent !== "") stale.push(state);
      // Seen: not read twice if it is found twice, and not removed.
      marks.set(state.key, { agent: "", fingerprint: "", isWhole });
    }
    const gone = [...marks].filter(([, { agent }]) => agent !== "" && !incomplete?.has(agent)).map(([key]) => key);
    if (gone.length > 0) await this.#ask(() => this.#table.remove(gone));
    for (const key of gone) await this.#ask(() => this.#base.tables.forget(key));
    stale.sort((a, b) => b.changedMs - a.changedMs);
    const rows: Row[] = [];
    for (const [done, state] of stale.entries()) {
      if (isOver?.()) break;
      onProgress?.(done, stale.length);
      const facts = isWhole
        ? await this.#read(state, run, isOver)
        : await glance(state.found, run).then((all) => redacted(all));
      if (facts !== null) rows.push(rowOf(state, facts, isWhole));
      if (rows.length >= (isWhole ? 1 : ROWS_AT_ONCE)) await this.#put(rows);
    }
    await this.#put(rows);
    while (!isOver?.() && (await this.#ask(() => this.#base.tables.sweep())));
    onProgress?.(stale.length, stale.length);
  }

  /** Newest first. */
  async list(): Promise<SessionOverview[]> {
    return await this.#ask(() => this.#table.all());
  }

  /** All of these words in one text; the last may be the start of a word. Newest sessions first. */
  async *search(words: string, wanted: (session: SessionOverview) => boolean): AsyncGenerator<IndexHit> {
    const query = wordsOf(words);
    if (query === null) return;
    for (const key of await this.#ask(() => this.#base.tables.sessionsWith(query))) {
      const session = await this.#ask(() => this.#table.one(key));
      if (session === null || !wanted(session)) continue;
      for (let before: number | null = null, isMore = true; isMore; ) {
        const from: number | null = before;
        const page: TextFound[] = await this.#ask(() => this.#base.tables.hits(key, query, from, HITS_PER_PAGE));
        for (const { seq, marked } of page) {
          // A long text has several rows.
          if (seq === before) continue;
          before = seq;
          yield { session, excerpt: excerptOf(marked) };
        }
        isMore = page.length === HITS_PER_PAGE;
      }
    }
  }

  /** Adds the texts of one session to the index. Null if nobody waits any more, or another process does it. */
  async #read(state: StaleSession, run: Door, isOver: RefreshOptions["isOver"]): Promise<SessionFacts | null> {
    const { key, fingerprint, found, changedMs } = state;
    // Since the list was made, another process may have read it.
    const now = await this.#ask(() => this.#table.mark(key));
    if (isFresh(now, fingerprint, true)) return null;
    await this.#ask(() => this.#base.tables.forget(key));
    const at = new Date(changedMs).toISOString();
    let mark: TextMark | null = null;
    let seq = 0;
    let chars = 0;
    let changes: TextChange[] = [];
    const flush = async (isEnd: boolean): Promise<void> => {
      const crc = isEnd ? fingerprint : `${fingerprint} until ${seq}`;
      const next = { seq, crc, head: seq, at, dialect: null, blind: false, cut: false };
      const before: TextMark | null = mark;
      if (!(await this.#ask(() => this.#base.tables.add(key, before, changes, next)))) throw new StopReading();
      mark = next;
      changes = [];
      chars = 0;
    };
    try {
      const facts = redacted(
        await readWhole(found, run, ({ id, text }) => {
          if (isOver?.()) throw new StopReading();
          const clean = credentials(text.slice(0, TEXT_CHARS_MAX));
          changes.push({ kind: "message", id, seq: ++seq, step: id, text: clean, hidden: false, carried: false });
          chars += clean.length;
          return chars > BATCH_CHARS || changes.length >= BATCH_TEXTS ? flush(false) : undefined;
        }),
      );
      if (facts.title !== null) changes.push({ kind: "title", title: facts.title });
      seq++;
      await flush(true);
      return facts;
    } catch (error) {
      if (error instanceof StopReading) return null;
      throw error;
    }
  }

  async #put(rows: Row[]): Promise<void> {
    if (rows.length === 0) return;
    await this.#ask(() => this.#table.put(rows));
    rows.length = 0;
  }

  #ask<T>(work: () => T | Promise<T>): Promise<T> {
    return patiently(PATIENCE_MS, work);
  }
}

interface Row {
  readonly overview: SessionOverview;
  readonly mark: Mark;
}

interface StaleSession {
  readonly found: FoundSession;
  readonly key: string;
  /** Of its files: while it is the same, there is nothing to read. */
  readonly fingerprint: string;
  readonly changedMs: number;
}

const isFresh = (mark: Mark | undefined, fingerprint: string, isWhole: boolean): boolean =>
  mark?.fingerprint === fingerprint && (mark.isWhole || !isWhole);

function stateOf(found: FoundSession, door: Door): StaleSession {
  const { agent, session } = found;
  const { id, path, parts, isShared } = session;
  let changedMs = 0;
  // What a database has not yet taken over is in its log.
  const files = [path, ...parts, ...(isShared ? [`${path}-wal`] : [])].map((file) => {
    try {
      const facts = door.facts(file);
      changedMs = Math.max(changedMs, facts?.modifiedMs ?? 0);
      return facts ? `${facts.size} ${facts.modifiedMs} ${facts.inode}` : "-";
    } catch {
      // The reader will say why.
      return "?";
    }
  });
  return { found, key: `${agent.name} ${id} ${path}`, fingerprint: files.join(", "), changedMs };
}

function rowOf({ found, key, fingerprint, changedMs }: StaleSession, facts: SessionFacts, isWhole: boolean): Row {
  const { agent, session } = found;
  const { id, path, isShared = false } = session;
  // A file that many sessions share says nothing of the single one.
  const at = isShared ? (facts.lastAt ?? changedMs) : changedMs;
  const overview = { key, agent: agent.name, id, path, isShared, at: Math.round(at), ...facts };
  return { overview, mark: { agent: agent.name, fingerprint, isWhole } };
}

function redacted(facts: SessionFacts): SessionFacts {
  const clean = (text: string | null): string | null => text && credentials(text.slice(0, TITLE_CHARS_MAX));
  return { ...facts, title: clean(facts.title), prompt: clean(facts.prompt), folder: clean(facts.folder) };
}
