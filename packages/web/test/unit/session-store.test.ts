import { afterEach, expect, test, vi } from "vitest";
import { SessionStore } from "../../src/state/session-store.ts";

/** The server's answers and events, in any order that a network may bring them. */
class Source extends EventTarget {
  static readonly opened: Source[] = [];

  constructor() {
    super();
    Source.opened.push(this);
  }

  close(): void {}

  say(name: string, data: object): void {
    this.dispatchEvent(new MessageEvent(name, { data: JSON.stringify(data) }));
  }
}

const session = (own: object) => ({ id: "s", title: "t", here: false, holder: null, status: "idle", ...own });
const transcript = (own: object) => ({ cursor: "1-a", version: null, count: 0, from: 0, items: [], ...own });
const answer = (id: string) => ({ kind: "answer", id, at: "2026-01-01T00:00:00Z", turn: 1, text: id });

/** Answers to requests whose address contains the text, when they are given. */
function served() {
  const waiting: { readonly address: string; readonly resolve: (response: Response) => void }[] = [];
  vi.stubGlobal("EventSource", Source);
  vi.stubGlobal("fetch", (address: string) => {
    const { promise, resolve } = Promise.withResolvers<Response>();
    if (address.includes("/timeline"))
      resolve(Response.json({ from: null, to: null, turns: 0, lanes: 0, merged: false, entries: [] }));
    else waiting.push({ address, resolve });
    return promise;
  });
  const next = async (part: string): Promise<(body: object) => void> => {
    await expect.poll(() => waiting.some(({ address }) => address.includes(part))).toBe(true);
    const [found] = waiting.splice(
      waiting.findIndex(({ address }) => address.includes(part)),
      1,
    );
    return (body) => found!.resolve(Response.json(body));
  };
  return { next };
}

afterEach(() => {
  vi.unstubAllGlobals();
  Source.opened.length = 0;
});

async function loaded(next: ReturnType<typeof served>["next"]): Promise<SessionStore> {
  const store = new SessionStore("s");
  const loading = store.load();
  (await next("/transcript"))(transcript({}));
  (await next("/sessions/s"))(session({ status: "interrupted", interruption: { turn: 1 } }));
  await loading;
  return store;
}

test("what was asked before the server opened the session does not replace what its events told", async () => {
  const { next } = served();
  const store = await loaded(next);
  // Somebody finishes the turn: the page hears of the record first, and asks.
  Source.opened[0]!.say("record", { seq: 2, kind: "turn.resumed" });
  const lateTranscript = await next("/transcript");
  const lateSession = await next("/sessions/s");
  Source.opened[0]!.say("state", {
    ...{ whole: true, version: "v.1", items: null, event: null },
    state: { title: "t", queue: [], interruption: null, phase: "running" },
  });
  (await next("/transcript"))(transcript({ version: "v.1", count: 1, items: [answer("new")] }));
  await expect.poll(() => store.items.value.map((item) => item?.id)).toEqual(["new"]);
  lateSession(session({ status: "interrupted", interruption: { turn: 1 } }));
  lateTranscript(transcript({ count: 0 }));
  await new Promise((resolve) => setTimeout(resolve, 20));
  expect(store.session.value).toMatchObject({ here: true, interruption: null });
  expect(store.items.value.map((item) => item?.id)).toEqual(["new"]);
  store.close();
});

test("of two answers that overtake each other, the newer one stays", async () => {
  const { next } = served();
  const store = await loaded(next);
  const state = { title: "t", queue: [], interruption: null, phase: "running" };
  for (const version of ["v.5", "v.6"])
    Source.opened[0]!.say("state", { whole: false, version, items: null, event: null, state });
  const first = await next("/transcript");
  const second = await next("/transcript");
  second(transcript({ version: "v.6", count: 2, items: [answer("a"), answer("b")] }));
  await expect.poll(() => store.items.value.length).toBe(2);
  first(transcript({ version: "v.5", count: 1, items: [answer("a")] }));
  await new Promise((resolve) => setTimeout(resolve, 20));
  expect(store.items.value.map((item) => item?.id)).toEqual(["a", "b"]);
  store.close();
});
