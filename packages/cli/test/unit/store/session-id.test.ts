import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { RemoteHost } from "@holdfast/server/client";
import { openStore, type Store } from "holdfast";
import { describe, expect, test } from "vitest";
import { sessionsOf } from "../../../src/serve/connect.ts";
import { isMeant, shortIds, withShortIds } from "../../../src/short-id.ts";
import { placeWithoutStore } from "../../../src/store/address.ts";
import { idsFor } from "../../../src/store/for-each-session.ts";
import { outputsFolder, sessionOutputs, sweepOutputs, touchOutputs } from "../../../src/store/output-folders.ts";
import { forkTitle, oneOf, resolveId } from "../../../src/store/session-id.ts";

async function spoken(store: Store, text: string): Promise<string> {
  await using session = await store.create({ dialect: "anthropic" });
  const turn = await session.startTurn({ role: "user", content: text });
  await turn.end();
  return session.id;
}

describe("the session that a user means", () => {
  test("by its id, its beginning, its end, or as the latest; sub-agents and empty ones are not the latest", async () => {
    await using store = await openStore("memory:");
    const first = await spoken(store, "one");
    const last = await spoken(store, "two");
    await (await store.create({ dialect: "anthropic" })).close();
    await using child = await store.create({ dialect: "anthropic", parent: { session: last } });
    await (await child.startTurn({ role: "user", content: "sub" })).end();
    expect(await resolveId(store, first)).toBe(first);
    expect(await resolveId(store, first.toUpperCase())).toBe(first);
    expect(await resolveId(store, first.slice(-6))).toBe(first);
    expect(await resolveId(store, first.slice(0, -1))).toBe(first);
    expect(await resolveId(store, "latest")).toBe(last);
    expect(await resolveId(store, "-")).toBe(last);
    // In a server, where somebody has it open: it is the one to attach to.
    await using empty = await store.create({ dialect: "anthropic" });
    const list = store.list.bind(store);
    const live = { url: store.url, list, has: store.has.bind(store), isLive: async (id: string) => id === empty.id };
    expect(await resolveId(live, "latest")).toBe(empty.id);
    expect(await resolveId(store, "latest")).toBe(last);
    // The server no longer has it: the client that had it open has just left.
    const call = async (): Promise<never> => {
      throw Object.assign(new Error("gone"), { code: "SESSION_NOT_FOUND" });
    };
    const host = { store: store.url, list, client: { call } } as unknown as RemoteHost;
    expect(await resolveId(sessionsOf(host), "latest")).toBe(last);
  });

  test("an end that fits several names none, and lists them; what names nothing is said", async () => {
    await using store = await openStore("memory:");
    await expect(resolveId(store, "latest")).rejects.toMatchObject({ exitCode: 3, code: "SESSION_NOT_FOUND" });
    const ids = [await spoken(store, "one\x1b[2J"), await spoken(store, "two")];
    const shared = ids[0]!.slice(0, 6);
    const error = await resolveId(store, shared).catch((thrown: Error) => thrown);
    expect(error).toMatchObject({ exitCode: 3, code: "SESSION_AMBIGUOUS" });
    for (const [id, title] of [
      [ids[0]!, "one"],
      [ids[1]!, "two"],
    ] as const)
      expect((error as Error).message).toContain(`  ${id.slice(-8)}  ${title} (just now)`);
    expect((error as Error).message).not.toContain("\x1b");
    for (const none of ["ab", "zzzz", "../../etc/passwd", "ffffffff", "01890000-0000-7000-8000-000000000000"])
      await expect(resolveId(store, none)).rejects.toMatchObject({ code: "SESSION_NOT_FOUND" });
  });

  test("what a list shows of an id can be typed: its random end, or the whole id if that is not enough", async () => {
    const ids = [
      "0199aaaa-0001-7aaa-8000-0000aaaa0001",
      "0199aaaa-0001-7bbb-8000-0001aaaa0001",
      "0199aaaa-0002-7ccc-8000-000000000003",
    ];
    expect([...shortIds(ids).values()]).toEqual([ids[0], ids[1], "00000003"]);
    await using store = await openStore("memory:");
    const all: string[] = [];
    for (let i = 0; i < 20; i++) all.push(await spoken(store, `prompt ${i}`));
    for (const [id, short] of shortIds(all)) {
      expect(await resolveId(store, short)).toBe(id);
      // People type the beginning of what they see.
      expect(await resolveId(store, short.slice(0, 6))).toBe(id);
    }
  });

  test("where the start of one id is the end of another, nothing is guessed", async () => {
    expect(isMeant("0199aaaa-0001-7aaa-8000-000000000001", "0199aaaa")).toBe(true);
    expect(isMeant("0200bbbb-0001-7aaa-8000-00000199aaaa", "0199aaaa")).toBe(true);
    expect(() =>
      oneOf(
        [
          { id: "0199aaaa-0001-7aaa-8000-000000000001", title: "begins so" },
          { id: "0200bbbb-0001-7aaa-8000-00000199aaaa", title: "half a pair \ud83d\u001b[2J" },
        ],
        "0199aaaa",
        "here",
      ),
    ).toThrow(/matches 2 sessions[\s\S]*00000001 {2}begins so[\s\S]*0199aaaa {2}half a pair \ufffd \(/);
  });

  test("ids in messages are short, and paths stay whole", () => {
    const id = "0199aaaa-0001-7aaa-8000-0123456789ab";
    expect(withShortIds(`Session ${id} is busy (${id}).`)).toBe("Session 456789ab is busy (456789ab).");
    const path = `/s/sessions/${id}/000001.jsonl, ${id}.json, ${id}-17`;
    expect(withShortIds(path)).toBe(path);
  });

  test("the title of a fork says that it is one, and stays short enough to say so", () => {
    expect(forkTitle("the flaky test")).toBe("the flaky test (fork)");
    expect(forkTitle("the flaky test (fork)")).toBe("the flaky test (fork 2)");
    expect(forkTitle("the flaky test (fork 9)", 3)).toBe("the flaky test (fork 10 at turn 3)");
    expect(forkTitle("the flaky test", 3)).toBe("the flaky test (fork at turn 3)");
    expect(forkTitle("the flaky test (fork at turn 3)")).toBe("the flaky test (fork 2)");
    expect(forkTitle(`${"x".repeat(500)}\u001b[2J`)).toBe(`${"x".repeat(79)}… (fork)`);
    expect(forkTitle("ends in \ud83d")).toBe("ends in \ufffd (fork)");
  });
});

test("where no store is yet: nothing there, or a folder of something else; what cannot be looked at may be one", () => {
  const path = mkdtempSync(join(tmpdir(), "holdfast-address-"));
  try {
    const [none, store, file] = ["none", "store", "file"].map((name) => join(path, name)) as [string, string, string];
    mkdirSync(join(store, "sessions"), { recursive: true });
    writeFileSync(file, "");
    for (const address of [none, pathToFileURL(none).href]) expect(placeWithoutStore(address)).toBe(none);
    for (const address of [`sqlite:${none}`, `sqlite://${none}`])
      expect(placeWithoutStore(address)).toBe(`sqlite:${none}`);
    expect(placeWithoutStore(path)).toBe(path);
    // Whatever else it is: opening it tells.
    for (const address of [
      store,
      file,
      `sqlite:${file}`,
      `sqlite:${store}`,
      "memory:",
      "postgres://h/d",
      "ftp:x",
      "file:x",
      "file:///a%2Fb",
      "file:///a%zz",
      "file:///a%00b",
      "",
    ])
      expect(placeWithoutStore(address), address).toBeNull();
  } finally {
    rmSync(path, { recursive: true, force: true });
  }
});

test("P9: whoever goes through all sessions comes past one that cannot be read", async () => {
  const path = mkdtempSync(join(tmpdir(), "holdfast-all-"));
  try {
    await using store = await openStore(path);
    const session = await store.create({ dialect: "ai-sdk" });
    await session.close();
    expect(await idsFor(store, [], true)).toEqual([session.id]);
    const other = "0199aaaa-0001-7bbb-8000-000000000001";
    mkdirSync(join(path, "sessions", other, "000001.jsonl"), { recursive: true });
    expect((await store.list()).sessions).toMatchObject([{ id: other, unreadable: { code: "PATH_UNSAFE" } }]);
    expect(await idsFor(store, [], true)).toEqual([session.id, other]);
    rmSync(join(path, "sessions"), { recursive: true });
    writeFileSync(join(path, "sessions"), "");
    await expect(idsFor(store, [], true), "nobody can say what is there").rejects.toThrow("list the sessions");
  } finally {
    rmSync(path, { recursive: true, force: true });
  }
});

describe("outputs of tools", () => {
  const place = (): Disposable & { path: string } => {
    const path = mkdtempSync(join(tmpdir(), "holdfast-outputs-"));
    return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) };
  };

  test("live beside the store, for its user alone (C24)", async () => {
    using folder = place();
    await using store = await openStore(join(folder.path, "s"));
    await using database = await openStore(`sqlite:${join(folder.path, "db.sqlite")}`);
    expect(outputsFolder(store.url)).toBe(join(folder.path, "s", "outputs"));
    expect(outputsFolder(database.url)).toBe(join(folder.path, "db.sqlite.outputs"));
    expect(outputsFolder("memory:")).toBeNull();
    expect(outputsFolder("postgres://u:secret@h/d", { XDG_DATA_HOME: "/data" })).toMatch(
      /^\/data\/holdfast-outputs\/[0-9a-f]{16}$/,
    );
    const before = process.umask(0);
    try {
      const own = sessionOutputs(store.url, "01890000-0000-7000-8000-000000000000")!;
      for (const path of [own, join(own, "..")]) expect(statSync(path).mode & 0o777).toBe(0o700);
    } finally {
      process.umask(before);
    }
    expect(() => sessionOutputs(store.url, "../../etc")).toThrow(/not an id/);
  });

  test("are swept when their session is gone for good, and not while it is in the trash", async () => {
    using folder = place();
    const [there, gone, trashed, old] = [1, 2, 3, 4].map((n) => `01890000-0000-7000-8000-00000000000${n}`) as [
      string,
      string,
      string,
      string,
    ];
    for (const id of [there, gone, trashed, old])
      writeFileSync(join(sessionOutputs(folder.path, id)!, "a.log"), "12345");
    mkdirSync(join(folder.path, "outputs", "not-a-session"));
    for (const id of [there, gone, trashed, old]) utimesSync(join(folder.path, "outputs", id), 1000, 1000);
    touchOutputs(folder.path, trashed);
    touchOutputs(folder.path, "01890000-0000-7000-8000-000000000009");
    const isThere = async (id: string) => id === there;
    expect(await sweepOutputs(folder.path, { isThere, removed: new Set([gone]), before: 500_000 })).toEqual({
      sessions: 1,
      bytes: 5,
      refused: [],
    });
    expect(await sweepOutputs(folder.path, { isThere, removed: new Set(), before: 2_000_000 })).toEqual({
      sessions: 1,
      bytes: 5,
      refused: [],
    });
    expect(readdirSync(join(folder.path, "outputs")).sort()).toEqual([there, trashed, "not-a-session"].sort());
  });
});
