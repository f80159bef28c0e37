import { AGENTS, Door, type FoundSession, type Keeper, SessionWatch, type WatchListeners } from "@holdfast/doctor";
import type { Store } from "holdfast";
import { type Flags, loadConfig } from "../config.ts";
import { failureOf } from "../failure.ts";
import { homeFolder } from "../home.ts";
import { allSessions } from "../store/session-id.ts";
import { plainLine } from "../terminal/plain.ts";
import { type ImportTarget, importSession, openTarget } from "./import.ts";
import { makeKeptFolder } from "./kept-folder.ts";
import { notify } from "./notify.ts";
import { counted } from "./report.ts";
import { lockWatch } from "./watch-lock.ts";

/** `holdfast watch`: runs until it is told to end, or once. */
export async function runWatch(flags: Flags, { isOnce }: { readonly isOnce: boolean }): Promise<void> {
  const config = loadConfig(flags);
  await using opened = await openTarget(flags);
  using _lock = lockWatch(opened.store.url);
  using door = new Door();
  const ended = endOfProcess();
  const machine = { environment: process.env, home: homeFolder() ?? "/" };
  const watch = new SessionWatch(AGENTS, machine, door, keeperOf(opened), listeners());
  try {
    for (const line of greeting(opened, config.redact)) say(line);
    await Promise.race([watch.start(), ended.told]);
    if (!ended.isTold) await sayMissed(watch, opened.store);
    if (!ended.isTold) say(`${counted(watch.sessions.length, "session")} kept.${isOnce ? "" : " Following them."}`);
    if (!isOnce) await ended.told;
  } finally {
    await watch.stop();
    ended.release();
    if (!isOnce) say("Stopped. Everything that was written until now is kept.");
  }
}

/** What is kept, and where: two lines. */
function greeting({ store, keepsFiles }: ImportTarget, isRedacted: boolean): string[] {
  const followed = AGENTS.filter(({ name, homes }) => name !== "holdfast" && homes(process.env, "/").length > 0);
  const titles = followed.map(({ title }) => title);
  const what = keepsFiles ? "their files, byte for byte, and their conversations" : "their conversations";
  const secrets = isRedacted
    ? "Credentials are redacted, so files are not copied; only you can read the store."
    : 'Passwords and keys in them are kept too ("redact" hides them); only you can read the store.';
  return [`Keeps the sessions of ${titles.join(", ")} in ${plainLine(store.url)}: ${what}.`, secrets];
}

function keeperOf({ store, keepsFiles }: ImportTarget): Keeper {
  const known = new Map<string, string>();
  return {
    keepsFiles,
    folderOf: (agent, session) => makeKeptFolder(store.url, agent, session),
    bring: async (found: FoundSession, door: Door) => {
      await importSession({ store, keepsFiles: false }, found, door, { watched: known });
    },
  };
}

function listeners(): WatchListeners {
  /** What was said, until it is over. */
  const troubles = new Map<string, string>();
  /** When the last ones were shown. */
  const notified: number[] = [];
  return {
    alarm: ({ kind, words }) => {
      say(`alarm ${kind}: ${words}`);
      // An agent may delete all of its sessions at once: a desktop shows some of that, and the log all.
      const now = Date.now();
      while (notified[0] !== undefined && now - notified[0] > MINUTE_MS) notified.shift();
      if (notified.length === NOTIFICATIONS_MAX) return;
      notified.push(now);
      notify(notified.length < NOTIFICATIONS_MAX ? words : "There is more: see what holdfast watch says.");
    },
    trouble: (key, words) => {
      if (troubles.has(key)) return;
      troubles.set(key, words);
      say(words);
    },
    recovered: (key) => {
      if (troubles.delete(key)) say(`Over: ${key === "store" ? "the store can be written again" : key}.`);
    },
    troubleOf: (error) => {
      const isFull = error instanceof Error && "code" in error && FULL.has(String(error.code));
      const { code, message } = failureOf(error);
      const words = code === "UNEXPECTED" && error instanceof Error ? error.message : message;
      return {
        key: isFull ? "store" : null,
        words: isFull ? `There is no space left for the store (${words})` : words,
      };
    },
  };
}

/** In a minute. */
const NOTIFICATIONS_MAX = 5;
const MINUTE_MS = 60_000;

const FULL: ReadonlySet<string> = new Set(["ENOSPC", "EDQUOT", "STORE_FULL"]);

/** Deleted while nobody watched: what was kept of an agent that is no longer there. */
async function sayMissed(watch: SessionWatch, store: Store): Promise<void> {
  for await (const { labels } of allSessions(store)) {
    const agent = AGENTS.find(({ name }) => name === labels?.["imported"]);
    const session = labels?.["imported-session"];
    if (agent && session !== undefined) watch.missed(agent, session);
  }
}

/** Times make a log; a terminal shows them too. */
function say(words: string): void {
  process.stderr.write(`${new Date().toISOString()} ${plainLine(words)}\n`);
}

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/** The first signal ends the watch when what is under way is kept; a second one ends the process. */
function endOfProcess(): { readonly told: Promise<void>; readonly isTold: boolean; readonly release: () => void } {
  const { promise, resolve } = Promise.withResolvers<void>();
  let isTold = false;
  // What is followed keeps no process alive.
  const alive = setInterval(() => undefined, 2 ** 30);
  const listener = (): void => {
    isTold = true;
    release();
    resolve();
  };
  const release = (): void => {
    clearInterval(alive);
    for (const signal of SIGNALS) process.off(signal, listener);
  };
  for (const signal of SIGNALS) process.on(signal, listener);
  return {
    told: promise,
    get isTold() {
      return isTold;
    },
    release,
  };
}
