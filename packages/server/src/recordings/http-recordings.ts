import { createHash, randomUUID } from "node:crypto";
import { type DialectName, HoldfastError, idFrom, isHoldfastError, type Store } from "holdfast";
import { canonical, defined } from "holdfast/internal";
import { refuse } from "../access/request-error.ts";
import type {
  ModelRequest,
  Recorded,
  RecordedMessages,
  Recording,
  RecordingState,
  RecordToMake,
} from "../schemas/recordings.ts";
import { apply, idsOf, openTurn, type RecordAnswer, type Work } from "./apply.ts";
import { jsonOf, messageOf, recordingOf } from "./show.ts";

const APP = "holdfast recorder";
const IDLE_MS = 600_000;
const STOPPED = { by: "server", reason: "it was stopped" };
/** To read a record that is there, unless it was damaged. */
const READ_MS = 10_000;
/** Labels of a session that was created with a key: by the second, a request with other attributes is told apart. */
const KEY_LABEL = "holdfast.key";
const CONTENT_LABEL = "holdfast.content";

export interface HttpRecordingsOptions {
  /** A session is released if its recorder is silent for this long. Default: ten minutes. */
  readonly idleMs?: number;
  readonly now?: () => number;
  /** The messages of a session in another dialect than its own. */
  readonly messagesIn: (session: string, dialect: string) => Promise<readonly unknown[]>;
  /** Called if a session could not be released properly. It is free either way. */
  readonly onError?: (error: unknown) => void;
}

export interface NewRecording {
  readonly key?: string | undefined;
  readonly dialect: DialectName;
  readonly title?: string | undefined;
  readonly cwd?: string | undefined;
  readonly app?: string | undefined;
  readonly labels?: Record<string, string> | undefined;
  readonly parent?: { readonly session: string; readonly call?: string | undefined } | undefined;
}

/** A session that this server has open for an agent in another process. */
interface ActiveRecording extends Work {
  recorder: string;
  usedAt: number;
  uses: number;
}

/**
 * Records for agents that are not in this process, through the same calls as an agent that is. A session has one
 * recorder, the last to become it: each has an id of its own, and records that come with an earlier id are refused.
 */
export class HttpRecordings {
  readonly #store: Store;
  readonly #options: HttpRecordingsOptions;
  readonly #now: () => number;
  readonly #idleMs: number;
  readonly #active = new Map<string, ActiveRecording>();
  /** The end of the work under way, by session. */
  readonly #lines = new Map<string, Promise<unknown>>();
  readonly #sweep: NodeJS.Timeout;
  #isStopping = false;

  constructor(store: Store, options: HttpRecordingsOptions) {
    this.#store = store;
    this.#options = options;
    // A clock that is set, or a machine that slept, must not take a session from its recorder.
    this.#now = options.now ?? (() => performance.now());
    this.#idleMs = options.idleMs ?? IDLE_MS;
    const everyMs = Math.max(20, Math.min(this.#idleMs / 4, 5000));
    this.#sweep = setInterval(() => void this.releaseIdle(), everyMs).unref();
  }

  /** Throws KEY_TAKEN, SESSION_BUSY, and what `store.create` throws. */
  create({ key, dialect, title, cwd, app, labels, parent }: NewRecording): Promise<Recording> {
    this.#assertAccepting();
    const attributes = defined({
      title,
      cwd,
      app,
      parent: parent && { session: parent.session, ...defined({ call: parent.call }) },
    });
    if (key === undefined) return this.#create(dialect, { ...attributes, ...defined({ labels }) });
    const content = digest(contentOf({ dialect, title, cwd, app, labels, parent }));
    const id = recordingId(key);
    return this.#inLine(id, async () => {
      try {
        const own = { [KEY_LABEL]: key, [CONTENT_LABEL]: content };
        return await this.#create(dialect, { ...attributes, id, labels: { ...labels, ...own } });
      } catch (error) {
        // Of several servers, the store lets one create it.
        if (!isHoldfastError(error, "SESSION_EXISTS")) throw error;
      }
      const { attributes: made } = await this.#store.read(id);
      if (made.labels[CONTENT_LABEL] !== content) throw keyTaken(key);
      return this.#take(id, true);
    });
  }

  /** Throws RECORDER_BUSY, SESSION_NOT_FOUND, SESSION_BUSY. */
  take(id: string, isForced: boolean): Promise<Recording> {
    this.#assertAccepting();
    return this.#inLine(id, () => this.#take(id, isForced));
  }

  async #take(id: string, isForced: boolean): Promise<Recording> {
    const recording = this.#active.get(id);
    if (recording && !isForced)
      throw refuse(
        "RECORDER_BUSY",
        `Session ${id} already has a recorder, which was last heard of ${Math.round((this.#now() - recording.usedAt) / 1000)} s ago. Nothing was changed. If that agent is gone, take the session from it ("take": true); otherwise wait until it releases the session.`,
        { session: id },
      );
    // Opened again: the tools that the other one has started are not running for this one.
    if (recording) {
      const why = { by: "recorder", reason: "another one has taken over" };
      await recording.session.turn?.abort(why).catch((error: unknown) => {
        // A journal that accepts nothing more would keep the session from everybody.
        if (!isOver(error)) throw error;
      });
      await this.#end(id, recording, why);
    }
    return this.#keep(await this.#store.resume<unknown>(id, { app: APP }));
  }

  /** Whether this server records the session, or is about to. */
  has(id: string): boolean {
    return this.#active.has(id) || this.#lines.has(id);
  }

  /** With its recorder's own id, also a sign of life. Throws RECORDER_UNKNOWN if it is not the recorder (any more). */
  async state(id: string, recorder?: string): Promise<RecordingState> {
    const recording = this.#active.get(id);
    const own = recording && recording.recorder === recorder ? recorder : null;
    const state = recordingOf(recording?.session ?? (await this.#store.read(id)), own, this.#idleMs);
    if (recorder === undefined) return state;
    if (recording?.recorder !== recorder) throw recorderUnknown(id);
    recording.usedAt = this.#now();
    return state;
  }

  /**
   * Durable when it resolves. A key that is known is answered without a recorder, so that a repetition is answered the
   * same by a server that has been restarted, and by another one.
   * Throws RECORDER_UNKNOWN, KEY_TAKEN, and what the calls of the session throw.
   */
  async record(
    id: string,
    recorder: string,
    key: string,
    record: RecordToMake,
  ): Promise<{ readonly recorded: Recorded; readonly repeated: boolean }> {
    const content = contentOf(record);
    if (record.type === "turn.start" || record.type === "turn.resume") this.#assertAccepting();
    return this.#use(id, recorder, async (recording) => {
      if (!recording) {
        const known = await this.#store.once(id, key, content);
        if (!known) throw recorderUnknown(id);
        const told = await this.#answerAgain(id, record, known.seq);
        if (told === null) throw recorderUnknown(id);
        return { recorded: { key, ...known, ids: idsOf(key, record), ...told }, repeated: true };
      }
      let told: RecordAnswer = {};
      const make = (): Promise<void> =>
        apply(recording, key, record, (answer) => {
          told = answer;
        });
      const { seq, last, repeated } = await recording.session.once(key, content, make, {
        streams: record.type === "draft" || record.type === "draft.discard" || record.type === "draft.restart",
      });
      if (repeated) {
        const again = await this.#answerAgain(id, record, seq);
        // A step that did not run has no record. It is looked up again, and still does not run.
        if (again === null) await make();
        else told = again;
      }
      return { recorded: { key, seq, last, ids: idsOf(key, record), ...told }, repeated };
    });
  }

  /** What the record was answered with when it was made; null if only its tool's run can tell. */
  async #answerAgain(id: string, record: RecordToMake, seq: number): Promise<RecordAnswer | null> {
    if (record.type !== "tool.started" && record.type !== "step.started") return {};
    for await (const made of this.#store.follow(id, seq - 1, { signal: AbortSignal.timeout(READ_MS) })) {
      // Another one follows if it was damaged, and versions without keys wrote none.
      if (made.seq !== seq) return null;
      const { kind, idempotencyKey: key } = made;
      if (kind === "tool.started") return typeof key === "string" ? { call: { key } } : {};
      return kind === "step.started" && typeof key === "string" ? { step: { state: "run", key } } : null;
    }
    return null;
  }

  /** Throws RECORDER_UNKNOWN, TURN_ENDED. */
  request(id: string, recorder: string, dialect?: DialectName): Promise<ModelRequest> {
    return this.#use(id, recorder, async (recording) => {
      if (!recording) throw recorderUnknown(id);
      const turn = openTurn(recording);
      const own = recording.session.attributes.dialect as DialectName;
      const { messages, draft } = turn.request();
      recording.draft = draft;
      const shown = dialect === undefined || dialect === own ? messages : await this.#options.messagesIn(id, dialect);
      return { turn: turn.number, dialect: dialect ?? own, messages: shown.map(jsonOf), draft: draft.id };
    });
  }

  /** The messages of the conversation with their ids, from index `from` on; without it, the last ones. */
  async messages(id: string, from: number | undefined, limit: number): Promise<RecordedMessages> {
    const { entries } = this.#active.get(id)?.session ?? (await this.#store.read<unknown>(id));
    const start = Math.min(from ?? Math.max(0, entries.length - limit), entries.length);
    return { count: entries.length, from: start, messages: entries.slice(start, start + limit).map(messageOf) };
  }

  /** Does nothing if nobody records the session. Throws RECORDER_UNKNOWN if another one does. */
  release(id: string, recorder: string): Promise<void> {
    return this.#inLine(id, async () => {
      const recording = this.#active.get(id);
      if (!recording) return;
      if (recording.recorder !== recorder) throw recorderUnknown(id);
      this.#active.delete(id);
      await recording.session.close();
    });
  }

  /** Releases the sessions whose recorders have been silent for too long. Never rejects. */
  async releaseIdle(): Promise<void> {
    const isIdle = (recording: ActiveRecording): boolean =>
      recording.uses === 0 && this.#now() - recording.usedAt >= this.#idleMs;
    const idle = [...this.#active].filter(([, recording]) => isIdle(recording));
    const why = { by: "recorder", reason: `it was silent for ${Math.round(this.#idleMs / 1000)} s` };
    await Promise.all(
      idle.map(([id, recording]) =>
        this.#inLine(id, async () => {
          if (this.#active.get(id) === recording && isIdle(recording)) await this.#end(id, recording, why);
        }),
      ),
    );
  }

  /**
   * Releases every session. Open turns are handed over: their agents go on, with the next server. Tools that run and
   * answers that are streamed get `graceMs` to be recorded, or until `hurry` fires. Never rejects.
   */
  async stop(graceMs: number, hurry?: AbortSignal): Promise<void> {
    this.#isStopping = true;
    clearInterval(this.#sweep);
    // What was accepted is recorded first, so that a turn that has just begun is handed over, too.
    await Promise.all(this.#lines.values());
    await Promise.all(
      [...this.#active].map(async ([id, { session }]) => {
        const stop = (): void =>
          void session.turn?.abort(STOPPED).catch((error: unknown) => this.#options.onError?.(error));
        hurry?.addEventListener("abort", stop, { once: true });
        if (hurry?.aborted) stop();
        // Not in line: what is still recorded of the turn comes meanwhile.
        await session
          .close({ handOver: true, withinMs: graceMs })
          .catch((error: unknown) => this.#options.onError?.(error));
        hurry?.removeEventListener("abort", stop);
        this.#active.delete(id);
      }),
    );
  }

  async #create(dialect: DialectName, attributes: object): Promise<Recording> {
    return this.#keep(await this.#store.create<unknown>({ dialect, ...attributes }));
  }

  #keep(session: ActiveRecording["session"]): Recording {
    const recording: ActiveRecording = {
      session,
      turn: null,
      draft: null,
      recorder: randomUUID(),
      usedAt: this.#now(),
      uses: 0,
    };
    this.#active.set(session.id, recording);
    return recordingOf(session, recording.recorder, this.#idleMs);
  }

  /** Records of one session are made one after another. `recording` is null if the caller is not its recorder. */
  #use<T>(id: string, recorder: string, work: (recording: ActiveRecording | null) => Promise<T>): Promise<T> {
    return this.#inLine(id, async () => {
      const recording = this.#active.get(id);
      if (!recording || recording.recorder !== recorder) return work(null);
      recording.uses += 1;
      try {
        return await work(recording);
      } catch (error) {
        // Nothing more can be recorded through this session. The next recorder opens it again.
        if (isOver(error)) await this.#end(id, recording, { by: "recorder", reason: "the store failed" });
        // It was released in this instant.
        if (this.#isStopping && isHoldfastError(error, "SESSION_CLOSED")) throw recorderUnknown(id);
        throw error;
      } finally {
        recording.uses -= 1;
        recording.usedAt = this.#now();
      }
    });
  }

  async #end(
    id: string,
    recording: ActiveRecording,
    why: { readonly by: string; readonly reason: string },
  ): Promise<void> {
    this.#active.delete(id);
    try {
      await recording.session.turn?.abort(why);
    } catch (error) {
      this.#options.onError?.(error);
    }
    await recording.session.close().catch((error: unknown) => this.#options.onError?.(error));
  }

  #inLine<T>(name: string, work: () => Promise<T>): Promise<T> {
    const before = this.#lines.get(name) ?? Promise.resolve();
    const done = before.then(work, work);
    const settled = done.then(
      () => undefined,
      () => undefined,
    );
    this.#lines.set(name, settled);
    void settled.then(() => {
      if (this.#lines.get(name) === settled) this.#lines.delete(name);
    });
    return done;
  }

  #assertAccepting(): void {
    if (this.#isStopping)
      throw refuse(
        "SERVER_STOPPING",
        "The server is stopping and starts nothing more. Nothing was recorded. Try again when it is back, with the same key.",
      );
  }
}

/** Throws REQUEST_INVALID. */
function contentOf(value: unknown): string {
  try {
    return canonical(value);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw refuse("REQUEST_INVALID", "The body is nested too deeply. Nothing was recorded.", { in: "body" });
  }
}

/** The journal accepts nothing more until it is opened again. */
function isOver(error: unknown): boolean {
  return isHoldfastError(
    error,
    ...([
      "FILE_REPLACED",
      "JOURNAL_CLOSED",
      "LEASE_LOST",
      "LIBRARY_REPLACED",
      "SESSION_CLOSED",
      "SYNC_FAILED",
    ] as const),
  );
}

/** The session that was, or will be, created with this key: the same in every server. */
export function recordingId(key: string): string {
  return idFrom(`holdfast recording ${key}`);
}

function recorderUnknown(session: string): Error {
  return refuse(
    "RECORDER_UNKNOWN",
    `The sender is not the recorder of session ${session}: another one has taken over, it was silent for too long, or the server was restarted. Nothing was recorded. To go on, become its recorder again; "next" then says whether a turn has to be resumed.`,
    { session },
  );
}

function keyTaken(key: string): Error {
  return new HoldfastError(
    "KEY_TAKEN",
    `A session was created with the key ${JSON.stringify(key.slice(0, 80))} and other attributes, so this one was not. Give each session its own key.`,
    { key: key.slice(0, 80) },
  );
}

function digest(text: string): string {
  return createHash("sha256").update(text).digest("base64url").slice(0, 22);
}
