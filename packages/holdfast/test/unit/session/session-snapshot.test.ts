import { setImmediate as tick } from "node:timers/promises";
import { isHoldfastError, type Session, type Store, type Turn } from "holdfast";
import { openMemoryStore } from "holdfast/internal";
import { type JournalStore, openStoreWith } from "holdfast/store";
import { describe, expect, test } from "vitest";
import type { Made } from "../sync/sync-agents.ts";
import { openLaterStore } from "./session-async-store-later.ts";

/**
 * R19: whatever is handed over is read once, inside the call. What the caller does to it afterwards changes nothing
 * that is stored or shown, on a store that writes inside the call and on one that writes later; and a value that cannot
 * be read is a typed error, with nothing recorded.
 */

interface Scene {
  readonly store: Store;
  readonly session: Session<Made>;
  readonly turn: Turn<Made>;
}

interface Way {
  readonly name: string;
  /** What is handed over, one argument after the other. Every text in it that begins with "kept" is to be stored. */
  readonly data: () => Made[];
  readonly call: (scene: Scene, first: Made, second: Made) => Promise<unknown>;
  /** It is called while no turn is open. */
  readonly isBetweenTurns?: true;
  /** A tool has run, or a turn is to stop: such a call is never refused, whatever it is given. */
  readonly isTotal?: true;
  /** The tool has been started. */
  readonly isStarted?: true;
}

const message = (text: string): Made => ({ role: "user", content: [{ type: "text", text }] });
const answer = (text: string): Made => ({ role: "assistant", content: [{ type: "text", text }] });
const result = (text: string): Made => ({
  role: "tool",
  content: [{ type: "tool-result", toolCallId: "a", toolName: "read", output: { type: "text", value: text } }],
});
const calling = {
  role: "assistant",
  content: [{ type: "tool-call", toolCallId: "a", toolName: "read", input: {} }],
};
const options = (): Made => ({
  metadata: { deep: { text: "kept metadata" } },
  model: "kept model",
  usage: { inputTokens: 1 },
});

const WAYS: Way[] = [
  {
    name: "startTurn",
    isBetweenTurns: true,
    data: () => [message("kept prompt"), options()],
    call: ({ session }, prompt, given) => session.startTurn(prompt, given),
  },
  {
    name: "startTurn with several",
    isBetweenTurns: true,
    data: () => [[{ role: "system", content: "kept system" }, message("kept prompt")]],
    call: ({ session }, prompt) => session.startTurn(prompt),
  },
  {
    name: "append",
    data: () => [message("kept message"), options()],
    call: ({ turn }, given, chosen) => turn.append(given, chosen),
  },
  {
    name: "append of several",
    data: () => [[answer("kept first"), answer("kept second")]],
    call: ({ turn }, given) => turn.append(given),
  },
  {
    name: "bytes in a message",
    data: () => [
      {
        role: "user",
        content: [{ type: "image", image: new Uint8Array([107, 101, 112, 116]), mediaType: "kept/type" }],
      },
    ],
    call: ({ turn }, given) => turn.append(given),
  },
  {
    name: "commit",
    data: () => [answer("kept answer"), options()],
    call: ({ turn }, given, chosen) => turn.request().draft.commit(given, chosen),
  },
  {
    name: "sync",
    data: () => [[message("kept one"), answer("kept two"), message("kept three")]],
    call: ({ session }, given) => session.sync([...session.messages, ...given]),
  },
  {
    name: "sync that rewrites",
    data: () => [[message("kept one"), answer("kept two"), message("kept three")]],
    call: ({ session }, given) => session.sync(given, { rewrite: "epoch" }),
  },
  {
    name: "replace",
    data: () => [[message("kept summary"), answer("kept answer")], { reason: "compaction" }],
    call: ({ session }, given, chosen) => session.replace(given, chosen),
  },
  {
    name: "replace by entries",
    data: () => [
      [
        {
          ...{ id: "e1", step: "e1", seq: 1, at: "2026-01-01T00:00:00.000Z", turn: 1, message: message("kept entry") },
          metadata: { text: "kept metadata" },
        },
      ],
    ],
    call: ({ session }, given) => session.replace(given, { reason: "compaction" }),
  },
  {
    name: "edit",
    data: () => [[message("kept words")], { reason: "kept reason", now: true }],
    call: ({ session }, shown, given) => session.edit([session.entries[0]!.id], shown, given),
  },
  {
    name: "enqueue",
    data: () => [message("kept prompt"), { metadata: { deep: { text: "kept metadata" } }, model: "kept model" }],
    call: ({ session }, prompt, given) => session.enqueue(prompt, given),
  },
  {
    name: "patch",
    data: () => [{ deep: { text: "kept metadata", list: ["kept item"] } }],
    call: ({ session }, given) => session.patch(session.entries[0]!.id, given),
  },
  {
    name: "note",
    data: () => [{ deep: { text: "kept note", list: ["kept item"] } }],
    call: ({ session }, given) => session.note("n", given),
  },
  {
    name: "usage",
    data: () => [{ inputTokens: 1, cost: { amount: 1, currency: "kept currency" } }],
    call: ({ turn }, given) => turn.usage(given),
  },
  {
    name: "suspend",
    data: () => [{ reason: "kept reason", calls: ["kept call"] }],
    call: ({ turn }, given) => turn.suspend(given),
  },
  {
    name: "abort",
    isTotal: true,
    data: () => [{ by: "kept by", reason: "kept reason" }],
    call: ({ turn }, given) => turn.abort(given),
  },
  {
    name: "fail",
    isTotal: true,
    data: () => [{ message: "kept error" }],
    call: ({ turn }, given) => turn.fail(given),
  },
  {
    name: "toolStarted",
    data: () => [{ input: { deep: { text: "kept input" } }, child: "kept child", replay: "safe" }],
    call: async ({ turn }, given) => turn.toolStarted("a", given),
  },
  {
    name: "toolEnded",
    isTotal: true,
    data: () => [{ value: { deep: { text: "kept value" } } }],
    call: async ({ turn }, given) => turn.toolEnded("a", given),
  },
  {
    name: "toolEnded with what is shown",
    data: () => [result("kept shown")],
    call: async ({ turn }, given) => turn.toolEnded("a", { value: 1 }, given),
  },
  {
    name: "toolProcess",
    data: () => [{ pid: 7, started: "kept started" }],
    isStarted: true,
    call: async ({ turn }, given) => turn.toolProcess("a", given),
  },
  {
    name: "create",
    data: () => [
      { dialect: "ai-sdk", title: "kept title", labels: { l: "kept label" }, parent: { session: "kept parent" } },
    ],
    call: async ({ store }, given) => {
      const session = store.create(given);
      return (await session).startTurn(message("x") as never);
    },
  },
  {
    name: "record",
    data: () => [{ dialect: "ai-sdk", title: "kept title", labels: { l: "kept label" } }],
    call: async ({ store }, given) => {
      const recorder = store.record(given);
      return (await recorder).startTurn(message("x") as never);
    },
  },
  {
    name: "fork",
    data: () => [{ title: "kept title" }],
    call: ({ store, session }, given) => store.fork(session.id, given),
  },
];

/** Changes everything that can be changed in it. */
function scribble(value: Made): void {
  if (value instanceof Uint8Array) value.fill(0);
  else if (Array.isArray(value)) {
    for (const [n, item] of value.entries()) {
      if (typeof item === "string") value[n] = "CHANGED";
      else scribble(item);
    }
    value.push("CHANGED");
  } else if (typeof value === "object" && value !== null) {
    for (const name of Object.keys(value)) {
      if (typeof value[name] === "string") value[name] = "CHANGED";
      else scribble(value[name]);
    }
    value["added"] = "CHANGED";
  }
}

/** The texts that are to be stored. */
function keptIn(value: Made): string[] {
  if (typeof value === "string") return value.startsWith("kept") ? [value] : [];
  if (value instanceof Uint8Array) return [Buffer.from(value).toString("base64")];
  return typeof value === "object" && value !== null ? Object.values(value).flatMap(keptIn) : [];
}

const STORES: [name: string, open: (options: Made) => Promise<JournalStore>][] = [
  ["a store that writes inside the call", (given) => openMemoryStore(given)],
  ["a store that writes later", (given) => openLaterStore(given, () => tick())],
];

describe.each(STORES)("%s", (_name, open) => {
  async function begin(way: Way): Promise<Scene> {
    const store = await openStoreWith(open);
    const session = await store.create<Made>({ dialect: "ai-sdk", draftMs: 1 });
    const turn = await session.startTurn(message("go"));
    await turn.append(calling);
    if (way.isStarted) await turn.toolStarted("a");
    if (way.isBetweenTurns) await turn.end();
    return { store, session, turn };
  }

  const recorded = async ({ store }: Scene): Promise<Made[]> => {
    const { sessions } = await store.list({ empty: true });
    const all = await Promise.all(sessions.map(({ id }) => Array.fromAsync(store.history(id))));
    return all.flat();
  };

  test.each(WAYS)("$name: what is changed right after the call is not stored", async (way) => {
    for (const isBehind of [false, true]) {
      const scene = await begin(way);
      // Something is on its way, and something waits behind it.
      const pending = isBehind
        ? [scene.session.note("p", 1), scene.session.rename("x"), scene.session.undo().catch(() => 0)]
        : [];
      const data = way.data();
      const wanted = keptIn(data);
      const done = way.call(scene, data[0], data[1]);
      scribble(data);
      await Promise.all([done, ...pending]);
      await scene.session.flush().catch(() => undefined);
      const stored = JSON.stringify(await recorded(scene));
      expect(stored).not.toContain("CHANGED");
      for (const text of wanted) expect(stored).toContain(text);
      const read = await scene.store.read<Made>(scene.session.id);
      expect(scene.session.entries.map(({ at: _, ...entry }) => entry)).toEqual(
        read.entries.map(({ at: _, ...entry }) => entry),
      );
      expect(scene.session.attributes).toEqual(read.attributes);
      await scene.store.close();
    }
  });

  test.each(WAYS)("$name: a getter is read once, and what it said first is what is stored and shown", async (way) => {
    const scene = await begin(way);
    const reads = new Map<string, number>();
    const data = whimsical(way.data(), reads);
    await way.call(scene, data[0], data[1]);
    await scene.session.flush().catch(() => undefined);
    const stored = JSON.stringify(await recorded(scene));
    for (const [path, count] of reads) expect(`${path} ${count}`).toBe(`${path} 1`);
    expect(stored).not.toContain("another time");
    for (const text of keptIn(way.data())) expect(stored).toContain(text);
    const read = await scene.store.read<Made>(scene.session.id);
    expect(JSON.stringify(scene.session.messages)).toBe(JSON.stringify(read.messages));
    await scene.store.close();
  });

  const HOSTILE: [what: string, make: (data: Made) => Made][] = [
    ["a getter that throws", (data) => hostile(data, () => ({ get: () => fail("no") }))],
    ["a getter that throws nothing", (data) => hostile(data, () => ({ get: () => fail(undefined) }))],
    ["a proxy that throws", (data) => spoiled(data, (of) => new Proxy(of, throwing()))],
    ["a proxy that was revoked", (data) => spoiled(data, revoked)],
    ["what contains itself", (data) => spoiled(data, (of) => Object.assign(of, { self: of }))],
    ["a function", (data) => spoiled(data, (of) => Object.assign(of, { fn: () => 1 }))],
    [
      "a toJSON",
      (data) => spoiled(data, (of) => Object.assign(of, { toJSON: () => ({ role: "user", content: "made up" }) })),
    ],
    ["NaN", (data) => spoiled(data, (of) => Object.assign(of, { n: Number.NaN }))],
  ];

  test.each(WAYS)("$name: what cannot be read or kept is a typed error, and nothing is recorded", async (way) => {
    const places = way.data().keys();
    for (const [what, make, at] of [...places].flatMap((n) => HOSTILE.map(([name, one]) => [name, one, n] as const))) {
      const scene = await begin(way);
      const before = await recorded(scene);
      const data = way.data();
      data[at] = make(data[at]);
      const error = await way.call(scene, data[0], data[1]).then(
        () => null,
        (reason: unknown) => reason,
      );
      const is = error === null ? "done" : isHoldfastError(error) ? "refused" : `${String(error)} of ${what}`;
      expect(way.isTotal ? ["done"] : ["done", "refused"]).toContain(is);
      const after = await recorded(scene);
      if (is === "refused") expect(after).toEqual(before);
      if (!way.isTotal) expect(JSON.stringify(after)).not.toContain("made up");
      await scene.store.close();
    }
  });
});

/** The same data, in which every text is a getter that says something else the second time. */
function whimsical(value: Made, reads: Map<string, number>, path = ""): Made {
  if (typeof value !== "object" || value === null || value instanceof Uint8Array) return value;
  const copy: Made = Array.isArray(value) ? [] : {};
  for (const [name, member] of Object.entries(value)) {
    const at = `${path}.${name}`;
    if (typeof member !== "string") {
      copy[name] = whimsical(member, reads, at);
      continue;
    }
    Object.defineProperty(copy, name, {
      enumerable: true,
      get: () => {
        const count = (reads.get(at) ?? 0) + 1;
        reads.set(at, count);
        return count === 1 ? member : `another time ${count}`;
      },
    });
  }
  return copy;
}

function hostile(value: Made, descriptor: () => PropertyDescriptor): Made {
  return spoiled(value, (of) => Object.defineProperty(of, "bad", { enumerable: true, ...descriptor() }));
}

/** With the first object in it that holds texts spoiled: the message, the metadata, or what there is. */
function spoiled(value: Made, spoil: (of: Made) => Made): Made {
  if (Array.isArray(value)) return value.map((item, n) => (n === 0 ? spoiled(item, spoil) : item));
  const inner = Object.keys(value).find((name) => typeof value[name] === "object" && value[name] !== null);
  return inner === undefined ? spoil(value) : spoil({ ...value, [inner]: value[inner] });
}

function fail(reason: unknown): never {
  throw reason;
}

function throwing(): ProxyHandler<Made> {
  const no = (): never => fail(new Error("no"));
  return { get: no, ownKeys: no, has: no, getPrototypeOf: no, getOwnPropertyDescriptor: no };
}

function revoked(of: Made): Made {
  const { proxy, revoke } = Proxy.revocable(of, {});
  revoke();
  return proxy;
}

test("bytes that were handed out are the caller's own: what is done to them is neither stored nor shown", async () => {
  await using store = await openStoreWith((given) => openMemoryStore(given));
  const session = await store.create<Made>({ dialect: "ai-sdk" });
  const prompt = {
    role: "user",
    content: [{ type: "image", image: new Uint8Array([1, 2, 3]), mediaType: "image/png" }],
  };
  const turn = await session.startTurn(prompt);
  const queued = await session.enqueue(prompt, { metadata: { a: 1 } });
  const handed = (): Made[] => [
    session.messages[0],
    session.entries[0]!.message,
    turn.prompt.message,
    queued.prompt,
    session.queue[0]!.prompt,
  ];
  for (const given of handed()) {
    expect(Object.isFrozen(given)).toBe(true);
    given.content[0].image.fill(9);
  }
  for (const given of handed().filter((one) => one !== queued.prompt))
    expect([...given.content[0].image]).toEqual([1, 2, 3]);
  expect(session.messages[0].content[0].image).toBeInstanceOf(Uint8Array);
  await session.replace([...session.entries], { reason: "compaction" });
  await turn.end();
  await session.startTurn(session.queue[0]!);
  const fork = await store.fork<Made>(session.id);
  for (const { messages } of [session, fork, await store.read<Made>(session.id)]) {
    for (const shown of messages as Made[]) {
      if (shown.role === "user") expect([...shown.content[0].image]).toEqual([1, 2, 3]);
    }
  }
  const array = [...session.messages];
  expect(await session.sync(array, { rewrite: "error" })).toEqual({ appended: [], epoch: false });
});
