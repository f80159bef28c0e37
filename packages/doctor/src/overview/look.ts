import { setImmediate as breathe } from "node:timers/promises";
import type { ProblemKind } from "../contract/problem.ts";
import type { SessionRecord } from "../contract/record.ts";
import { diagnose } from "../diagnosis/diagnose.ts";
import type { FoundSession } from "../diagnosis/sessions.ts";
import { type Door, Refused } from "../files/door.ts";
import { folderIn, promptIn, saidIn } from "./said.ts";

/** What a list says of a session, from its first records or from all of them. */

export interface SessionFacts {
  readonly title: string | null;
  /** The first words of the user. */
  readonly prompt: string | null;
  readonly folder: string | null;
  /** When the last record was written that says so, as milliseconds since 1970. */
  readonly lastAt: number | null;
  /** Null if it was not read to its end. */
  readonly problems: { readonly count: number; readonly kinds: readonly ProblemKind[] } | null;
  /** Why it cannot be read; null if it can. */
  readonly unreadable: string | null;
}

/** One text of a session that a search finds. */
export interface SaidText {
  /** Its record; the same text under the same name is there once. */
  readonly id: string;
  readonly text: string;
}

/** How much of a session is read for a list. */
const RECORDS_MAX = 400;
const BYTES_MAX = 4 * 2 ** 20;
const PROMPT_CHARS_MAX = 400;
/** Between two pauses, in which a signal is heard. */
const PAUSE_BYTES = 8 * 2 ** 20;
const KINDS_MAX = 20;

/** Reads the first records, until they say what a list needs. */
export async function glance({ agent, session }: FoundSession, run: Door): Promise<SessionFacts> {
  using door = run.inner();
  const facts = new Facts(session.folder ?? null);
  try {
    let records = 0;
    let bytes = 0;
    for (const item of await agent.read(session, door)) {
      if (item.type === "problem") {
        if (item.problem.kind === "unopenable" && records === 0) return facts.unread(item.problem.detail ?? "");
        continue;
      }
      facts.add(item.record);
      bytes += item.record.length;
      if (facts.isEnough || ++records === RECORDS_MAX || bytes > BYTES_MAX) break;
    }
    return facts.result();
  } catch (error) {
    return facts.unread(wordsOf(error));
  }
}

/**
 * Reads all of it, with what is wrong with it. `onText` gets each text in order, and what it returns is waited for.
 * Only its own errors are thrown.
 */
export async function readWhole(
  { agent, session }: FoundSession,
  run: Door,
  onText: (said: SaidText) => Promise<void> | undefined,
): Promise<SessionFacts> {
  const facts = new Facts(session.folder ?? null);
  let failure: unknown = null;
  let number = 0;
  let bytes = 0;
  try {
    const { problems, problemsLeftOut, title } = await diagnose(agent, session, run, (record) => {
      facts.add(record);
      number++;
      bytes += record.length;
      const text = saidIn(record);
      const isPause = bytes > PAUSE_BYTES;
      if (isPause) bytes = 0;
      if (text === "") return isPause ? breathe() : undefined;
      const id = record.id === null ? `#${number}` : `${record.thread} ${record.id}`;
      const waiting = (async () => {
        try {
          await onText({ id, text });
        } catch (error) {
          failure = error;
          throw error;
        }
        if (isPause) await breathe();
      })();
      return waiting;
    });
    const isUnopenable = problems.some(({ kind }) => kind === "unopenable") && number === 0;
    if (isUnopenable) return facts.unread(problems.find(({ kind }) => kind === "unopenable")?.detail ?? "");
    const kinds = [...new Set(problems.map(({ kind }) => kind))].slice(0, KINDS_MAX);
    return { ...facts.result(), title, problems: { count: problems.length + problemsLeftOut, kinds } };
  } catch (error) {
    if (failure !== null) throw failure;
    return facts.unread(wordsOf(error));
  }
}

class Facts {
  #title: string | null = null;
  #prompt: string | null = null;
  #folder: string | null;
  #lastAt: number | null = null;
  #records = 0;

  constructor(folder: string | null) {
    this.#folder = folder;
  }

  add(record: SessionRecord): void {
    this.#records++;
    if (record.thread === "main" && this.#prompt === null) {
      const prompt = promptIn(record)?.slice(0, PROMPT_CHARS_MAX);
      // A copy: a part of a text keeps all of it in memory.
      if (prompt !== undefined) this.#prompt = Buffer.from(prompt).toString();
    }
    this.#folder ??= folderIn(record);
    if (record.at !== null) this.#lastAt = Math.max(this.#lastAt ?? record.at, record.at);
    for (const unit of record.units) if (unit.type === "title") this.#title = unit.text;
  }

  /** A title stands at the beginning, or comes much later. */
  get isEnough(): boolean {
    return this.#prompt !== null && this.#folder !== null && this.#records >= 20;
  }

  result(): SessionFacts {
    const [title, prompt, folder, lastAt] = [this.#title, this.#prompt, this.#folder, this.#lastAt];
    return { title, prompt, folder, lastAt, problems: null, unreadable: null };
  }

  unread(why: string): SessionFacts {
    return { ...this.result(), unreadable: why };
  }
}

function wordsOf(error: unknown): string {
  if (error instanceof Refused || error instanceof Error) return error.message;
  return String(error);
}
