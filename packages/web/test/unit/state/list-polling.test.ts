import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { ListStore } from "../../../src/state/list-store.ts";

interface PageRequest {
  readonly address: string;
  readonly signal: AbortSignal | undefined;
  readonly answer: (body: object) => Promise<void>;
  readonly refuse: (code: string) => Promise<void>;
}

let asked: PageRequest[] = [];
const page = { visibilityState: "visible" };

beforeEach(() => {
  asked = [];
  page.visibilityState = "visible";
  vi.useFakeTimers();
  vi.stubGlobal("document", page);
  vi.stubGlobal("fetch", (address: string, { signal }: { signal?: AbortSignal } = {}) => {
    const { promise, resolve, reject } = Promise.withResolvers<Response>();
    signal?.addEventListener("abort", () => reject(signal.reason));
    const reply = async (response: Response): Promise<void> => {
      resolve(response);
      await vi.advanceTimersByTimeAsync(0);
    };
    asked.push({
      ...{ address, signal },
      answer: (body) => reply(Response.json(body)),
      refuse: (code) => reply(Response.json({ code, detail: code }, { status: 403 })),
    });
    return promise;
  });
});

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

const row = (id: string, own: object = {}) => ({ id, title: id, at: "2026-01-01", status: "idle", queued: 0, ...own });
const shown = (list: ListStore) => list.sessions.value.map(({ id, status }) => `${id} ${status}`);
const addresses = () => asked.map(({ address }) => decodeURIComponent(address));

async function loaded(rows: readonly object[]): Promise<ListStore> {
  const list = new ListStore();
  void list.load();
  await asked.shift()!.answer({ sessions: rows });
  return list;
}

test("the first page is small, the others are large, and what is loaded is shown at once", async () => {
  const list = new ListStore();
  let isLoaded = false;
  void list.load().then(() => (isLoaded = true));
  expect(addresses()).toEqual(["./sessions?limit=100"]);
  await asked.shift()!.answer({ sessions: [row("a")], next: "x y" });
  expect([shown(list), list.isComplete.value, isLoaded]).toEqual([["a idle"], false, false]);
  expect(asked[0]!.address).toBe("./sessions?limit=1000&after=x+y");
  await asked.shift()!.answer({ sessions: [row("b", { at: "2025-01-01" })] });
  expect([shown(list), list.isComplete.value, isLoaded]).toEqual([["a idle", "b idle"], true, true]);
  expect(asked).toEqual([]);
});

test("a list that is shown is read again and again, one that nobody sees is not", async () => {
  await loaded([row("a")]);
  await vi.advanceTimersByTimeAsync(2499);
  expect(asked).toEqual([]);
  await vi.advanceTimersByTimeAsync(1);
  expect(addresses()).toEqual(["./sessions?limit=50"]);
  // Not again before the answer.
  await vi.advanceTimersByTimeAsync(60_000);
  expect(asked).toHaveLength(1);
  await asked.shift()!.answer({ sessions: [] });
  page.visibilityState = "hidden";
  await vi.advanceTimersByTimeAsync(10_000);
  expect(asked).toEqual([]);
  page.visibilityState = "visible";
  await vi.advanceTimersByTimeAsync(2500);
  expect(addresses()).toEqual(["./sessions?limit=50"]);
});

test("a list that is loaded twice is polled once", async () => {
  const list = await loaded([row("a")]);
  void list.load();
  await asked.shift()!.answer({ sessions: [] });
  await vi.advanceTimersByTimeAsync(2500);
  expect(asked).toHaveLength(1);
});

test("of sessions that ran, those that run no longer and are not at the top are asked for", async () => {
  const list = await loaded([row("a", { status: "running" }), row("b", { status: "running" }), row("c")]);
  let isDone = false;
  void list.refresh().then(() => (isDone = true));
  expect(addresses()).toEqual(["./sessions?limit=50", "./sessions?status=running&limit=1000"]);
  await asked[0]!.answer({ sessions: [row("c", { title: "new" })] });
  expect(isDone).toBe(false);
  await asked[1]!.answer({ sessions: [row("b", { status: "running" })] });
  expect(isDone).toBe(false);
  expect(addresses().at(-1)).toBe("./sessions/a");
  await asked[2]!.answer({ ...row("a", { status: "interrupted" }), queue: [] });
  expect(isDone).toBe(true);
  expect(new Set(shown(list))).toEqual(new Set(["a interrupted", "b running", "c idle"]));
  expect(list.sessions.value.find(({ id }) => id === "c")?.title).toBe("new");
});

test("one that ran and has ended since is as the list says", async () => {
  const list = await loaded([row("a", { status: "running" })]);
  void list.refresh();
  await asked[0]!.answer({ sessions: [row("a", { status: "waiting" })] });
  await asked[1]!.answer({ sessions: [row("d", { status: "running", at: "2024-01-01" })] });
  expect(shown(list)).toEqual(["a waiting", "d running"]);
});

test("a list in which nothing changed is not drawn again, any change of a row is drawn", async () => {
  const list = await loaded([row("a"), row("b")]);
  let drawings = 0;
  list.sessions.subscribe(() => drawings++);
  const refresh = async (...rows: object[]): Promise<number> => {
    void list.refresh();
    await asked.shift()!.answer({ sessions: rows });
    return drawings;
  };
  expect(await refresh(row("a"), row("b"))).toBe(0);
  expect(await refresh(row("a", { title: "t" }), row("b"))).toBe(1);
  expect(await refresh(row("a", { status: "waiting" }), row("b"))).toBe(2);
  expect(await refresh(row("a", { queued: 1 }), row("b"))).toBe(3);
  expect(await refresh(row("a", { at: "2026-01-02" }), row("b"))).toBe(4);
  expect(await refresh(row("c", { at: "2026-01-03" }))).toBe(5);
  expect(await refresh(row("b"), row("a"))).toBe(6);
});

test("a refusal is shown until the server answers again", async () => {
  const list = await loaded([row("a")]);
  void list.refresh();
  await asked.shift()!.refuse("FORBIDDEN");
  expect([list.failure.value?.code, shown(list)]).toEqual(["FORBIDDEN", ["a idle"]]);
  void list.refresh();
  await asked.shift()!.answer({ sessions: [] });
  expect(list.failure.value).toBeNull();
  void list.load();
  await asked.shift()!.refuse("FORBIDDEN");
  expect(list.failure.value?.code).toBe("FORBIDDEN");
  void list.load();
  await asked.shift()!.answer({ sessions: [] });
  expect(list.failure.value).toBeNull();
});

test("an answer that is none of the server's is a fault, and not hidden", async () => {
  const list = await loaded([]);
  const refreshing = list.refresh();
  const failed = expect(refreshing).rejects.toThrow(TypeError);
  await asked.shift()!.answer({ sessions: null });
  await failed;
});

test("a session that was deleted while loading failed is there again once it is restored", async () => {
  const list = new ListStore();
  void list.load();
  list.forget("a");
  await asked.shift()!.refuse("FORBIDDEN");
  void list.load();
  await asked.shift()!.answer({ sessions: [row("a")] });
  expect(shown(list)).toEqual(["a idle"]);
});

test("a search begins when the typing stops, and only the last one is shown", async () => {
  const list = await loaded([]);
  list.search("on");
  list.search(" one ");
  expect(list.found.value).toEqual({ query: " one ", hits: null });
  await vi.advanceTimersByTimeAsync(119);
  expect(asked).toEqual([]);
  await vi.advanceTimersByTimeAsync(1);
  expect(addresses()).toEqual(["./search?q=one&limit=300"]);
  const first = asked.shift()!;
  list.search("two");
  expect(first.signal?.aborted).toBe(true);
  await vi.advanceTimersByTimeAsync(120);
  await first.answer({ hits: ["late"] });
  expect([list.found.value, list.failure.value]).toEqual([{ query: "two", hits: null }, null]);
  await asked.shift()!.answer({ hits: [] });
  expect(list.found.value).toEqual({ query: "two", hits: [] });
  list.search("  ");
  expect(list.found.value).toBeNull();
  await vi.advanceTimersByTimeAsync(1000);
  expect(asked).toEqual([]);
});

test("an answer to a search that comes after the words were taken back is not shown", async () => {
  const list = await loaded([]);
  list.search("one");
  await vi.advanceTimersByTimeAsync(120);
  const body = Promise.withResolvers<object>();
  const slow = { ok: true, status: 200, json: () => body.promise } as Response;
  vi.stubGlobal("fetch", () => Promise.resolve(slow));
  list.search("two");
  await vi.advanceTimersByTimeAsync(120);
  list.search("");
  body.resolve({ hits: [] });
  await vi.advanceTimersByTimeAsync(0);
  expect(list.found.value).toBeNull();
});

test("a search that is refused says so", async () => {
  const list = await loaded([]);
  list.search("one");
  await vi.advanceTimersByTimeAsync(120);
  await asked.shift()!.refuse("FORBIDDEN");
  expect(list.failure.value?.code).toBe("FORBIDDEN");
});
