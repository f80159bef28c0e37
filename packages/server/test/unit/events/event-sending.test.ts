import { EventEmitter } from "node:events";
import { HoldfastError, type JournalRecord, type Store } from "holdfast";
import { afterEach, expect, test, vi } from "vitest";
import { EventStream, WAITING_BYTES_MAX } from "../../../src/events/event-stream.ts";
import { followSession } from "../../../src/events/follow-session.ts";
import { RecordHub, START, sentRecord } from "../../../src/events/record-hub.ts";

afterEach(() => {
  vi.useRealTimers();
});

const flush = async () => {
  for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve));
};

/** The side of a connection that a server writes to. */
class Response extends EventEmitter {
  written: string[] = [];
  writableLength = 0;
  headers: object = {};
  ends = 0;
  isDestroyed = false;
  socket = { bytesWritten: 0 };

  writeHead(_status: number, headers: object): void {
    this.headers = headers;
  }
  write(text: string): void {
    this.written.push(text);
  }
  end(): void {
    this.ends++;
    this.emit("close");
  }
  destroy(): void {
    this.isDestroyed = true;
    this.emit("close");
  }
}

function streaming(pace = {}) {
  const response = new Response();
  const stream = new EventStream(response as never, { own: "header" }, pace);
  response.written = [];
  return { response, stream };
}

test("a stream says what it is, and sends events until it ends", () => {
  const { response, stream } = streaming();
  expect(response.headers).toEqual({
    ...{ own: "header", "content-type": "text/event-stream; charset=utf-8", "cache-control": "no-store" },
    "x-accel-buffering": "no",
  });
  stream.send("state", null, "{}");
  stream.send("record", "1-a", "{}");
  stream.send("start-over", "", "{}");
  expect(response.written).toEqual([
    "event: state\ndata: {}\n\n",
    "id: 1-a\nevent: record\ndata: {}\n\n",
    "id: \nevent: start-over\ndata: {}\n\n",
  ]);
  stream.end();
  stream.end();
  stream.send("state", null, "late");
  expect([response.written.length, response.ends, stream.signal.aborted]).toEqual([3, 1, true]);
});

test("a stream ends when its connection does, whichever way", () => {
  for (const event of ["close", "error"]) {
    vi.useFakeTimers();
    const { response, stream } = streaming();
    expect([stream.signal.aborted, vi.getTimerCount()]).toEqual([false, 1]);
    response.emit(event, new Error("reset"));
    expect([stream.signal.aborted, vi.getTimerCount()]).toEqual([true, 0]);
    vi.useRealTimers();
  }
});

test("there is room until so much waits to be read, and again when it was read or the client is gone", async () => {
  const { response, stream } = streaming();
  response.writableLength = WAITING_BYTES_MAX - 1;
  expect([stream.hasRoom, stream.waitingBytes]).toEqual([true, WAITING_BYTES_MAX - 1]);
  await stream.room();
  response.writableLength = WAITING_BYTES_MAX;
  let rooms = 0;
  const wait = () => void stream.room().then(() => rooms++);
  wait();
  wait();
  let drains = 0;
  stream.onDrain(() => drains++);
  await flush();
  expect([stream.hasRoom, rooms]).toEqual([false, 0]);
  response.emit("drain");
  await flush();
  expect([rooms, drains]).toEqual([2, 1]);
  response.emit("drain");
  expect(drains).toBe(1);
  wait();
  await flush();
  expect(rooms).toBe(2);
  response.emit("close");
  await flush();
  expect(rooms).toBe(3);
  await stream.room();
});

test("a client that reads hears a sign of life; one that reads nothing for too long is gone", () => {
  vi.useFakeTimers();
  const { response, stream } = streaming({ heartbeatMs: 10, stuckMs: 30 });
  vi.advanceTimersByTime(20);
  expect(response.written).toEqual([":\n\n", ":\n\n"]);
  response.writableLength = 5;
  response.socket.bytesWritten = 100;
  vi.advanceTimersByTime(30);
  // It reads slowly: its time begins again.
  response.socket.bytesWritten = 101;
  vi.advanceTimersByTime(30);
  expect([response.isDestroyed, response.written.length]).toEqual([false, 2]);
  response.emit("drain");
  vi.advanceTimersByTime(30);
  expect(response.isDestroyed).toBe(false);
  vi.advanceTimersByTime(10);
  expect([response.isDestroyed, stream.signal.aborted]).toEqual([true, true]);
  // The usual pace.
  const usual = streaming();
  vi.advanceTimersByTime(14_999);
  expect(usual.response.written).toEqual([]);
  vi.advanceTimersByTime(1);
  expect(usual.response.written).toEqual([":\n\n"]);
  usual.response.writableLength = 5;
  vi.advanceTimersByTime(60_000);
  expect(usual.response.isDestroyed).toBe(false);
  vi.advanceTimersByTime(15_000);
  expect(usual.response.isDestroyed).toBe(true);
});

const record = (seq: number, own: object = {}): JournalRecord =>
  ({ seq, at: "2026-01-01T00:00:00Z", kind: "message", crc: `c${seq}`, ...own }) as JournalRecord;
const cursor = (seq: number): string => sentRecord(record(seq)).cursor;

test("a record is sent without what concerns only the journal, and in brief without its content", () => {
  const own = { ...{ summary: 1, unit: 1, synced: 1, ahead: 1, key: "k" }, message: { text: "long" } };
  const about = { turn: 1, id: "i", call: "c", name: "n", outcome: "o", reason: "r", by: "b", child: "s", model: "m" };
  const sent = sentRecord(record(7, { ...own, ...about, step: 2, title: { not: "shown" } }));
  const head = { seq: 7, at: "2026-01-01T00:00:00Z", kind: "message" };
  expect(JSON.parse(sent.full)).toEqual({
    ...head,
    ...about,
    step: 2,
    message: { text: "long" },
    title: { not: "shown" },
  });
  expect(JSON.parse(sent.brief)).toEqual({ ...head, ...about, step: 2 });
  expect(sent).toMatchObject({ seq: 7, events: { full: null, brief: null } });
});

/** A journal that grows when the test says so, and how often it was followed. */
function journal() {
  const all: JournalRecord[] = [];
  let wake = Promise.withResolvers<void>();
  let end: { readonly error?: Error } | null = null;
  const follows: unknown[] = [];
  const tell = () => {
    wake.resolve();
    wake = Promise.withResolvers();
    return flush();
  };
  async function* follow(_id: string, after: number | string, { signal }: { signal: AbortSignal }) {
    follows.push(after);
    let index = after === 0 ? 0 : all.findIndex((one) => sentRecord(one).cursor === after) + 1;
    const aborted = new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
    while (!signal.aborted) {
      if (index < all.length) yield all[index++]!;
      else if (end?.error) throw end.error;
      else if (end) return;
      else await Promise.race([wake.promise, aborted]);
    }
  }
  return {
    ...{ store: { follow } as unknown as Store, follows },
    add: (...records: JournalRecord[]) => {
      all.push(...records);
      return tell();
    },
    end: (error?: Error) => {
      end = error ? { error } : {};
      return tell();
    },
  };
}

/** Everything after a position, by number, and how it ended. */
async function after(hub: RecordHub, position: string, signal = new AbortController().signal) {
  const seqs: unknown[] = [];
  const records = hub.after(position, signal);
  for (;;) {
    const next = await records.next();
    if (next.done) return [...seqs, next.value];
    seqs.push(next.value.seq);
  }
}

test("followers get what is in memory, and read the rest from the journal", async () => {
  const { store, add, follows } = journal();
  const hub = new RecordHub(store, "s", START);
  expect([hub.cursor, hub.isOver]).toEqual([START, false]);
  await add(record(1), record(2), record(4));
  expect(hub.cursor).toBe(cursor(4));
  expect(await after(hub, START)).toEqual([1, 2, 4, "current"]);
  expect(await after(hub, cursor(2))).toEqual([4, "current"]);
  expect(await after(hub, cursor(4))).toEqual(["current"]);
  const known = (position: string) => hub.since(position)?.map(({ seq }) => seq) ?? null;
  expect([known(START), known(cursor(1)), known(cursor(2)), known(cursor(4)), known("2-0"), known("3-0")]).toEqual([
    ...[[1, 2, 4], [2, 4], [4], [], null, null],
  ]);
  expect(follows).toEqual([0]);
  // A megabyte is kept: the first ones are read from the journal.
  const large = "x".repeat(600_000);
  await add(record(5, { message: large }), record(6, { message: large }));
  expect([known(START), known(cursor(4)), known(cursor(5))]).toEqual([null, null, [6]]);
  expect(await after(hub, START)).toEqual([1, 2, 4, 5, 6, "current"]);
  expect(follows).toEqual([0, 0]);
  expect(await after(hub, cursor(4))).toEqual([5, 6, "current"]);
  expect(follows).toEqual([0, 0, cursor(4)]);
  hub.stop();
  expect(await after(hub, cursor(6))).toEqual(["stopped"]);
});

test("who is at the end is handed each record, until there is no room, or the end of it", async () => {
  const { store, add, end } = journal();
  const hub = new RecordHub(store, "s", START);
  await add(record(1));
  const taken: number[] = [];
  const ends: string[] = [];
  const tail = (name: string, position: string, signal: AbortSignal, hasRoom = true) =>
    void hub
      .tail(position, signal, ({ seq }) => {
        taken.push(seq);
        return hasRoom;
      })
      .then(() => ends.push(name));
  const stop = new AbortController();
  tail("behind", START, stop.signal);
  tail("full", cursor(1), stop.signal, false);
  tail("aborted", cursor(1), stop.signal);
  tail("over", cursor(1), new AbortController().signal);
  await flush();
  expect(ends).toEqual(["behind"]);
  await add(record(2));
  expect([ends, taken]).toEqual([
    ["behind", "full"],
    [2, 2, 2],
  ]);
  stop.abort();
  await flush();
  expect(ends).toEqual(["behind", "full", "aborted"]);
  await add(record(3));
  expect(taken).toEqual([2, 2, 2, 3]);
  await end();
  expect([ends.at(-1), hub.isOver]).toEqual(["over", true]);
  expect(await after(hub, cursor(3))).toEqual(["deleted"]);
  expect(await after(hub, cursor(3), AbortSignal.abort())).toEqual(["stopped"]);
});

test("a store that is closed is a stop, any other failure is told", async () => {
  for (const [error, told] of [
    [new HoldfastError("STORE_CLOSED", "closed"), null],
    [new HoldfastError("STORE_IO", "broken"), "broken"],
  ] as const) {
    const { store, end } = journal();
    const hub = new RecordHub(store, "s", START);
    await end(error);
    if (told === null) expect(await after(hub, START)).toEqual(["stopped"]);
    else await expect(after(hub, START)).rejects.toThrow(told);
  }
});

/** A client of a session, and what it was sent: the name, the id, and the seq of a record. */
async function client(own: { position?: object; isBrief?: boolean; known?: JournalRecord[] } = {}) {
  const made = journal();
  await made.add(...(own.known ?? []));
  const hub = new RecordHub(made.store, "s", START);
  const { response, stream } = streaming();
  const state: { live: object | null } = { live: {} };
  let listener: Record<string, (value: never) => void> | null = null;
  const feed = {
    chat: { state },
    whole: () => '"whole"',
    textAfter: (answer: string | null, at: number) => [{ answer: "x", end: 9, json: `"after ${answer} ${at}"` }],
    follow: (one: typeof listener) => {
      listener = one;
      return () => {
        listener = null;
      };
    },
  };
  let current: typeof feed | null = null;
  let watcher = () => {};
  let unwatched = 0;
  const watch = (one: () => void) => {
    watcher = one;
    return () => unwatched++;
  };
  const position = { cursor: START, answer: null, characters: 0, ...own.position };
  const following = followSession(
    stream,
    { hub, feed: () => current as never, watch },
    { position, isBrief: own.isBrief ?? false },
  );
  await flush();
  const sent = () =>
    response.written.splice(0).map((text) => {
      const [, id, name, data] = /^(?:id: (.*)\n)?event: (.*)\ndata: (.*)\n\n$/.exec(text) ?? [];
      return `${name} ${id ?? "-"} ${data!.replace(/^\{"seq":(\d+).*/, "$1")}`;
    });
  const attach = (isOpen: boolean) => {
    current = isOpen ? feed : null;
    watcher();
  };
  return {
    ...made,
    ...{ hub, response, stream, state, following, sent, attach },
    listener: () => listener!,
    unwatched: () => unwatched,
  };
}

test("a client gets the records, the state and the words, each event with the place that it leads to", async () => {
  const { add, sent, attach, listener, state, end, following, response, unwatched } = await client();
  await add(record(1));
  expect(sent()).toEqual([`record ${cursor(1)} 1`]);
  attach(true);
  expect(sent()).toEqual(['state - "whole"', `text ${cursor(1)}~x.9 "after null 0"`]);
  attach(true);
  expect(sent()).toEqual([]);
  listener()["state"]!('"changed"' as never);
  listener()["text"]!({ answer: "y", end: 3, json: '"words"' } as never);
  await add(record(2));
  expect(sent()).toEqual(['state - "changed"', `text ${cursor(1)}~y.3 "words"`, `record ${cursor(2)}~y.3 2`]);
  // The answer is over: a place in it leads nowhere.
  state.live = null;
  await add(record(3));
  expect(sent()).toEqual([`record ${cursor(3)} 3`]);
  attach(false);
  expect(listener()).toBeNull();
  attach(true);
  sent();
  listener()["closed"]!(undefined as never);
  expect(sent()[0]).toMatch(/^closed - /);
  await end();
  await following;
  expect(sent()[0]).toMatch(/^deleted - /);
  expect([response.ends, unwatched()]).toEqual([1, 1]);
});

test("who comes back gets what follows, in brief if that is wanted", async () => {
  const { response, sent, attach, stream, following } = await client({
    known: [record(1), record(2, { message: "content" })],
    position: { cursor: cursor(1), answer: "x", characters: 4 },
    isBrief: true,
  });
  expect(response.written.map((text) => text.includes("content"))).toEqual([false]);
  expect(sent()).toEqual([`record ${cursor(2)} 2`]);
  attach(true);
  expect(sent()[1]).toBe(`text ${cursor(2)}~x.9 "after x 4"`);
  stream.end();
  await following;
});

test("a client that does not read gets the whole state when it has, and no record is left out", async () => {
  const { add, sent, attach, listener, response, stream, following } = await client();
  attach(true);
  sent();
  response.writableLength = WAITING_BYTES_MAX;
  listener()["state"]!('"lost"' as never);
  listener()["text"]!({ answer: "x", end: 10, json: '"lost"' } as never);
  await add(record(1));
  await add(record(2));
  expect(sent()).toEqual([`record ${cursor(1)}~x.9 1`]);
  response.writableLength = 0;
  response.emit("drain");
  await flush();
  expect(sent()).toEqual(['state - "whole"', `text ${cursor(1)}~x.9 "after x 9"`, `record ${cursor(2)}~x.9 2`]);
  listener()["state"]!('"again"' as never);
  expect(sent()).toEqual(['state - "again"']);
  stream.end();
  await following;
  expect(listener()).toBeNull();
});
