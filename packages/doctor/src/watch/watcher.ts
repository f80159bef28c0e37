import { existsSync } from "node:fs";
import type { Agent } from "../contract/agent.ts";
import { diagnose } from "../diagnosis/diagnose.ts";
import { type FoundSession, type Machine, sessionsHere } from "../diagnosis/sessions.ts";
import type { Door } from "../files/door.ts";
import { type KeptFiles, keepSession } from "../keep/keep-session.ts";
import { Activity } from "./activity.ts";
import {
  deletedWords,
  loadWords,
  overlapWords,
  rewrittenWords,
  sessionAlarm,
  shrunkWords,
  unreadableWords,
} from "./alarm.ts";
import { type Keeper, PACE, type WatchListeners, type WatchPace } from "./contract.ts";
import { FolderEvents } from "./folder-events.ts";
import { TEXT_DAMAGE } from "./problems.ts";
import { Schedule } from "./schedule.ts";
import { factsOf, type SessionFacts, sizeOf, statOf } from "./session-files.ts";
import { NO_STATE, readState, type SessionState, writeState } from "./session-state.ts";
import { keyOf, nameOf, type Tracked, track } from "./tracked.ts";

/**
 * Follows the sessions of agents, and keeps what they write: first the bytes of their files, then their conversation.
 * The system's events say what changed; a slow look at everything finds what they missed.
 */

/** Bringing a conversation in takes a fifth of the time at most, a look at all folders a twentieth, others less. */
const BRING_SHARE = 4;
const DISCOVER_SHARE = 20;
const SWEEP_SHARE = 400;
/** At how many looks at all files it looks for others, too. */
const DISCOVER_EVERY = 4;
const CHECK_SHARE = 20;
/** A conversation must fit into the memory; of longer sessions, only the files are kept. */
const CONVERSATION_BYTES_MAX = 2 ** 27;
const FAST_BYTES_MAX = 2 ** 24;
const RETRY_MS = 1_000;
const RETRY_MS_MAX = 60_000;
const NEWCOMER_MS = 15_000;

export class SessionWatch {
  readonly #agents: readonly Agent[];
  readonly #machine: Machine;
  readonly #door: Door;
  readonly #keeper: Keeper;
  readonly #listeners: WatchListeners;
  readonly #pace: WatchPace;
  readonly #activity: Activity;
  readonly #events: FolderEvents;
  readonly #tracked = new Map<string, Tracked>();
  readonly #byPath = new Map<string, Set<Tracked>>();
  readonly #schedule: Schedule<Tracked>;
  readonly #ending = new AbortController();
  #discovery: NodeJS.Timeout | null = null;
  #sweeping: NodeJS.Timeout | null = null;
  #discoveredAt = 0;
  #discoverCostMs = 0;
  #sweeps = 0;
  #isStarted = false;
  #isStopped = false;

  constructor(
    agents: readonly Agent[],
    machine: Machine,
    door: Door,
    keeper: Keeper,
    listeners: WatchListeners,
    { pace = PACE, activity = new Activity() }: { readonly pace?: WatchPace; readonly activity?: Activity } = {},
  ) {
    // Holdfast's own sessions are kept already.
    this.#agents = agents.filter(({ name }) => name !== "holdfast");
    this.#machine = machine;
    this.#door = door;
    this.#keeper = keeper;
    this.#listeners = listeners;
    this.#pace = pace;
    this.#activity = activity;
    this.#schedule = new Schedule(
      (tracked) => this.#attend(tracked),
      ({ size, found }) => (size > FAST_BYTES_MAX || found.session.isShared ? "slow" : "fast"),
    );
    this.#events = new FolderEvents(door, {
      onChange: (path) => this.#changed(path),
      onLimit: (words) => listeners.trouble("events", `Changes are found by looking every few seconds: ${words}.`),
    });
  }

  get sessions(): readonly FoundSession[] {
    return [...this.#tracked.values()].map(({ found }) => found);
  }

  /** Resolves when all that is there is kept. From then on everything that comes is. */
  async start(): Promise<void> {
    this.#discover();
    await this.#schedule.settled(this.#tracked.values());
    this.#isStarted = true;
    this.#planSweep(this.#pace.sweep);
  }

  /** Resolves when what was under way is kept. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    clearTimeout(this.#discovery ?? undefined);
    clearTimeout(this.#sweeping ?? undefined);
    this.#events[Symbol.dispose]();
    this.#ending.abort();
    await this.#schedule.stop();
  }

  /** Says of a session that was kept, but is not there when the watch starts, that it was deleted. */
  missed(agent: Agent, session: string): void {
    const isThere = [...this.#tracked.values()].some(
      ({ found }) => found.agent.name === agent.name && found.session.id === session,
    );
    const folder = isThere ? null : this.#keeper.folderOf(agent.name, session);
    if (folder === null) return;
    const state = readState(folder, this.#door);
    if (state.brought === null || state.isDeleted) return;
    const path = state.place?.path ?? "";
    const place = { agent: agent.name, id: session, path, parts: [] };
    writeState(folder, { ...state, isDeleted: true });
    this.#listeners.alarm(sessionAlarm("deleted", { agent, session: place }, deletedWords(path)));
  }

  #changed(path: string): void {
    if (this.#isStopped) return;
    const now = Date.now();
    const known = this.#byPath.get(path.replace(/-(?:wal|shm)$/, ""));
    for (const tracked of known ?? []) {
      const isRecent = tracked.grownAt !== null && now - tracked.grownAt < 600_000;
      this.#schedule.add(tracked, now + (tracked.found.session.isShared && !isRecent ? 2_000 : this.#pace.settle));
    }
    // It may be a new session, a new part of one, or one that is gone.
    if (!known || [...known].some(({ found }) => found.session.isShared) || !existsSync(path)) this.#discoverSoon();
  }

  #discoverSoon(): void {
    if (this.#discovery !== null || this.#isStopped) return;
    const wait = Math.max(this.#pace.settle, DISCOVER_SHARE * this.#discoverCostMs);
    const at = Math.max(Date.now() + this.#pace.settle, this.#discoveredAt + wait);
    this.#discovery = setTimeout(() => {
      this.#discovery = null;
      this.#discover();
    }, at - Date.now()).unref();
  }

  /** Looks for sessions that came or went. */
  #discover(): void {
    const begin = performance.now();
    const seen = new Set<string>();
    const failed = new Set<string>();
    for (const agent of this.#agents) {
      try {
        for (const root of agent.homes(this.#machine.environment, this.#machine.home)) this.#events.follow(root);
        for (const found of sessionsHere([agent], this.#machine, this.#door)) {
          seen.add(keyOf(found));
          this.#find(found);
        }
        this.#listeners.recovered(`find ${agent.name}`);
      } catch (error) {
        failed.add(agent.name);
        const { key, words } = this.#listeners.troubleOf(error);
        this.#listeners.trouble(key ?? `find ${agent.name}`, `The sessions of ${agent.title} were not found: ${words}`);
      }
    }
    const gone: [string, Tracked][] = [];
    const living = new Set<string>();
    for (const [key, tracked] of this.#tracked)
      if (seen.has(key) || failed.has(tracked.found.agent.name)) living.add(nameOf(tracked.found));
      else if (!isInDamage(tracked.found, seen)) gone.push([key, tracked]);
    for (const [key, tracked] of gone) this.#miss(key, tracked, living.has(nameOf(tracked.found)));
    this.#discoverCostMs = performance.now() - begin;
    this.#discoveredAt = Date.now();
  }

  #find(found: FoundSession): void {
    const key = keyOf(found);
    const known = this.#tracked.get(key);
    const tracked = known ?? track(found, sizeOf(found, this.#door));
    tracked.goneAt = null;
    if (!known) this.#tracked.set(key, tracked);
    else if (JSON.stringify(known.found.session) === JSON.stringify(found.session)) return;
    this.#forgetPaths(tracked);
    tracked.found = found;
    for (const path of [found.session.path, ...found.session.parts]) {
      const sessions = this.#byPath.get(path) ?? new Set();
      this.#byPath.set(path, sessions.add(tracked));
    }
    this.#schedule.add(tracked, Date.now());
  }

  #forgetPaths(tracked: Tracked): void {
    const { path, parts } = tracked.found.session;
    for (const each of [path, ...parts]) {
      this.#byPath.get(each)?.delete(tracked);
      if (this.#byPath.get(each)?.size === 0) this.#byPath.delete(each);
    }
  }

  /** One that is not found any more: deleted, unless it is somewhere else, or comes back at once. */
  #miss(key: string, tracked: Tracked, isElsewhere: boolean): void {
    tracked.goneAt ??= Date.now();
    if (!isElsewhere && Date.now() - tracked.goneAt < this.#pace.gone) {
      setTimeout(() => this.#discoverSoon(), this.#pace.gone).unref();
      return;
    }
    this.#tracked.delete(key);
    this.#forgetPaths(tracked);
    this.#schedule.remove(tracked);
    if (isElsewhere || tracked.state === null || tracked.state.isDeleted) return;
    this.#remember(tracked, { isDeleted: true });
    this.#listeners.alarm(sessionAlarm("deleted", tracked.found, deletedWords(tracked.found.session.path)));
  }

  /** Keeps what a session has by now. */
  async #attend(tracked: Tracked): Promise<void> {
    const { found } = tracked;
    const { agent, session } = found;
    const key = `session ${nameOf(found)}`;
    try {
      using door = this.#door.inner();
      await this.#keep(tracked, door);
      tracked.failures = 0;
      this.#listeners.recovered(key);
      this.#listeners.recovered("store");
    } catch (error) {
      if (this.#isStopped) return;
      const wait = Math.min(RETRY_MS * 2 ** tracked.failures++, RETRY_MS_MAX);
      this.#schedule.add(tracked, Date.now() + wait);
      const { key: common, words } = this.#listeners.troubleOf(error);
      this.#listeners.trouble(
        common ?? key,
        `${agent.title} session ${session.id} is not kept now: ${words} It is tried again.`,
      );
    }
  }

  async #keep(tracked: Tracked, door: Door): Promise<void> {
    const { found } = tracked;
    const begin = Date.now();
    tracked.stat = statOf(found, door);
    const facts = await factsOf(found, door);
    if (facts === null) {
      this.#discoverSoon();
      return;
    }
    const folder = this.#keeper.folderOf(found.agent.name, found.session.id);
    tracked.state ??= folder === null ? NO_STATE : readState(folder, door);
    const isFirst = tracked.facts === null;
    const isNew = tracked.facts?.text !== facts.text;
    const isToCheck = !isNew && tracked.checkAt !== null && tracked.checkAt <= begin;
    if (tracked.facts !== null && isNew) tracked.grownAt = begin;
    if (!this.#keeper.keepsFiles && tracked.facts !== null && facts.size < tracked.facts.size)
      this.#listeners.alarm(
        sessionAlarm("shrunk", found, shrunkWords(found.session.path, tracked.facts.size, facts.size)),
      );
    tracked.facts = facts;
    tracked.size = facts.size;
    if (tracked.state.isDeleted) this.#remember(tracked, { isDeleted: false });
    const isKnown = found.session.isShared && tracked.state.brought === facts.text;
    // Of a database that tells no sessions, nothing is kept: it may hold the keys of accounts.
    const isUnknown = isWholeDatabase(found);
    if (
      this.#keeper.keepsFiles &&
      folder !== null &&
      !isKnown &&
      !isUnknown &&
      (isNew || isToCheck || tracked.failures > 0)
    )
      await this.#keepFiles(tracked, folder, isFirst || isToCheck, isToCheck, door);
    if (!isUnknown) await this.#bring(tracked, facts, door);
    if (isToCheck) await this.#check(tracked, begin, door);
    else if (isNew && (!isFirst || this.#isStarted))
      tracked.checkAt = Date.now() + Math.max(this.#pace.quiet, CHECK_SHARE * tracked.checkCostMs);
    // Also after an event without a change, which came in its place.
    if (tracked.checkAt !== null) this.#schedule.add(tracked, tracked.checkAt);
  }

  async #keepFiles(
    tracked: Tracked,
    folder: string,
    isThorough: boolean,
    isForced: boolean,
    door: Door,
  ): Promise<void> {
    const { found } = tracked;
    const kept = await keepSession(found.agent, found.session, folder, door, {
      isThorough,
      isForced,
      signal: this.#ending.signal,
    });
    for (const refused of kept.refused)
      this.#listeners.trouble(`file ${refused.path}`, `${refused.path} is not kept: ${refused.message}.`);
    for (const file of kept.files) this.#judge(found, file);
  }

  #judge(found: FoundSession, { change, path, before, size }: KeptFiles["files"][number]): void {
    if (change !== "shrunk" && change !== "rewritten") return;
    const loader = this.#activity.newcomer(found, NEWCOMER_MS);
    const [kind, words] =
      loader !== null
        ? (["load-rewrites", loadWords(path, loader)] as const)
        : change === "shrunk"
          ? (["shrunk", shrunkWords(path, before, size)] as const)
          : (["rewritten", rewrittenWords(path)] as const);
    this.#listeners.alarm(sessionAlarm(kind, found, words));
  }

  async #bring(tracked: Tracked, facts: SessionFacts, door: Door): Promise<void> {
    const { found } = tracked;
    if (tracked.state!.brought === facts.text) return;
    if (facts.size > CONVERSATION_BYTES_MAX) {
      if (!tracked.isTooLong)
        this.#listeners.trouble(
          `long ${keyOf(found)}`,
          `${found.agent.title} session ${found.session.id} has more than ${CONVERSATION_BYTES_MAX / 2 ** 20} MB: its file is kept, its conversation is not brought into the store any more.`,
        );
      tracked.isTooLong = true;
      return;
    }
    if (Date.now() < tracked.bringAt) {
      this.#schedule.add(tracked, tracked.bringAt);
      return;
    }
    const begin = performance.now();
    await this.#keeper.bring(found, door);
    tracked.bringAt = Date.now() + BRING_SHARE * (performance.now() - begin);
    this.#remember(tracked, { brought: facts.text });
  }

  /** After the last change: says what is wrong with it now and was not before. */
  async #check(tracked: Tracked, begin: number, door: Door): Promise<void> {
    const { found, facts } = tracked;
    tracked.checkAt = null;
    if (facts!.size <= CONVERSATION_BYTES_MAX) {
      const { problems } = await diagnose(found.agent, found.session, door);
      const known = new Set(tracked.state!.problems);
      const kinds = [...new Set(problems.map(({ kind }) => kind))];
      const added = kinds.filter((kind) => !known.has(kind));
      const unreadable = added.filter((kind) => TEXT_DAMAGE.has(kind));
      if (unreadable.length > 0) this.#listeners.alarm(sessionAlarm("unreadable", found, unreadableWords(unreadable)));
      if (added.includes("overlapping-sequence"))
        this.#listeners.alarm(sessionAlarm("second-writer", found, overlapWords()));
      if (kinds.length !== known.size || added.length > 0) this.#remember(tracked, { problems: kinds });
    }
    tracked.checkCostMs = Date.now() - begin;
  }

  #remember(tracked: Tracked, more: Partial<SessionState>): void {
    const { agent, session } = tracked.found;
    const place = { agent: agent.name, id: session.id, path: session.path, parts: session.parts };
    tracked.state = { ...tracked.state!, place, ...more };
    const folder = this.#keeper.folderOf(agent.name, session.id);
    if (folder !== null) writeState(folder, tracked.state);
  }

  #planSweep(wait: number): void {
    if (!this.#isStopped) this.#sweeping = setTimeout(() => this.#sweep(), wait).unref();
  }

  /** Looks at everything: what the system's events missed, or never tell. */
  #sweep(): void {
    const begin = performance.now();
    try {
      // Events tell of sessions that come and go; this finds those that they missed.
      if (this.#events.isLimited || this.#sweeps++ % DISCOVER_EVERY === 0) this.#discover();
      const now = Date.now();
      for (const tracked of this.#tracked.values())
        if (tracked.stat !== null && tracked.stat !== statOf(tracked.found, this.#door))
          this.#schedule.add(tracked, now);
      const seen = [...this.#tracked.values()];
      const recent = seen.filter(({ grownAt }) => grownAt !== null && now - grownAt < 2 * this.#pace.sweep);
      for (const alarm of this.#activity.look(this.#agents, seen, now)) this.#listeners.alarm(alarm);
      for (const alarm of this.#activity.writers(recent)) this.#listeners.alarm(alarm);
    } catch (error) {
      this.#listeners.trouble("sweep", this.#listeners.troubleOf(error).words);
    }
    const rest = this.#events.isLimited ? this.#pace.poll : this.#pace.sweep;
    this.#planSweep(Math.max(rest, SWEEP_SHARE * (performance.now() - begin)));
  }
}

const isWholeDatabase = ({ session }: FoundSession): boolean =>
  !session.isShared && /\.(?:db|sqlite3?)$/.test(session.path);

/** Whether the session lies in a database that tells none of its sessions now: it is damaged, and they are not gone. */
const isInDamage = ({ agent, session }: FoundSession, seen: ReadonlySet<string>): boolean =>
  session.isShared === true && seen.has(keyOf({ agent, session: { ...session, isShared: false } }));
