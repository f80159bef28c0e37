import { afterEach, expect, test, vi } from "vitest";
import { ListStore } from "../../../src/state/list-store.ts";

interface PageRequest {
  readonly address: string;
  readonly answer: (sessions: readonly object[], next?: string) => void;
  readonly breakOff: () => void;
}

/** A server that answers when it is told to, in any order. */
function served(): PageRequest[] {
  vi.useFakeTimers();
  vi.stubGlobal("document", { visibilityState: "visible" });
  const asked: PageRequest[] = [];
  vi.stubGlobal("fetch", (address: string) => {
    const { promise, resolve } = Promise.withResolvers<Response>();
    const answer: PageRequest["answer"] = (sessions, next) =>
      resolve(Response.json({ sessions, ...(next ? { next } : {}) }));
    const body = new ReadableStream({ start: (controller) => controller.error(new TypeError("network error")) });
    asked.push({ address, answer, breakOff: () => resolve(new Response(body)) });
    return promise;
  });
  return asked;
}

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

const row = (id: string, at: number, status = "idle") => ({ id, title: id, at: `2026-01-0${at}`, status, queued: 0 });
const settled = () => vi.advanceTimersByTimeAsync(0);
const shown = (list: ListStore) => list.sessions.value.map(({ id, status }) => `${id} ${status}`);

async function loaded(asked: PageRequest[], rows: readonly object[]): Promise<ListStore> {
  const list = new ListStore();
  const loading = list.load();
  asked.shift()!.answer(rows);
  await loading;
  return list;
}

test("a list that was asked for before a session was deleted does not bring it back", async () => {
  const asked = served();
  const list = await loaded(asked, [row("b", 2), row("a", 1)]);
  void list.refresh();
  list.forget("b");
  asked.shift()!.answer([row("b", 2), row("a", 1)]);
  await settled();
  expect(shown(list)).toEqual(["a idle"]);
  // Restored.
  void list.refresh();
  asked.shift()!.answer([row("b", 2), row("a", 1)]);
  await settled();
  expect(shown(list)).toEqual(["b idle", "a idle"]);
});

test("a session that is deleted while the list is loaded stays away", async () => {
  const asked = served();
  const list = new ListStore();
  const loading = list.load();
  asked.shift()!.answer([row("c", 3)], "next");
  await settled();
  list.forget("a");
  asked.shift()!.answer([row("b", 2), row("a", 1)]);
  await loading;
  expect(shown(list)).toEqual(["c idle", "b idle"]);
});

test("of two lists that overtake each other, the newer one stays", async () => {
  const asked = served();
  const list = await loaded(asked, [row("a", 1)]);
  void list.refresh();
  void list.refresh();
  const [first, second] = asked.splice(0);
  second!.answer([row("a", 2, "waiting")]);
  await settled();
  first!.answer([row("a", 1)]);
  await settled();
  expect(shown(list)).toEqual(["a waiting"]);
});

test("an answer that breaks off halfway is a server out of reach, and the list goes on when it is back", async () => {
  const asked = served();
  const list = new ListStore();
  void list.load();
  asked.shift()!.answer([row("b", 2)], "next");
  await settled();
  asked.shift()!.breakOff();
  await settled();
  expect(list.failure.value).toMatchObject({ code: "UNREACHABLE" });
  expect(list.isComplete.value).toBe(false);

  await vi.advanceTimersByTimeAsync(3000);
  asked.shift()!.breakOff();
  await vi.advanceTimersByTimeAsync(3000);
  asked.shift()!.answer([row("b", 2)], "next");
  await settled();
  asked.shift()!.answer([row("a", 1)]);
  await settled();
  expect(shown(list)).toEqual(["b idle", "a idle"]);
  expect([list.failure.value, list.isComplete.value]).toEqual([null, true]);

  await vi.advanceTimersByTimeAsync(3000);
  expect(asked).toHaveLength(1);
});
