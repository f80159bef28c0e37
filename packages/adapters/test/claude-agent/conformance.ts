import { expect, test } from "vitest";
import type { HoldfastSessionStore } from "../../src/claude-agent/index.ts";
import type { SessionEntry, SessionKey } from "../../src/claude-agent/surface.ts";

/**
 * The 13 cases that Anthropic publishes for a `SessionStore` (examples/session-stores/shared/conformance.ts of
 * anthropics/claude-agent-sdk-typescript; they are in no package), written for Vitest.
 */

const MAIN: SessionKey = { projectKey: "proj", sessionId: "sess" };
const sub = (name: string, of = MAIN): SessionKey => ({ ...of, subpath: `subagents/${name}` });
const entry = (type: string, members: object = {}): SessionEntry => ({ type, ...members });

/** `open` gives an empty store each time. */
export function conformance(open: () => Promise<HoldfastSessionStore & AsyncDisposable>): void {
  test("append, then load: the same entries in the same order", async () => {
    await using store = await open();
    const entries = [entry("a", { n: 1, nested: { x: [1, 2] } }), entry("b", { n: 2 })];
    await store.append(MAIN, entries);
    expect(await store.load(MAIN)).toEqual(entries);
  });

  test("an unknown key loads as null", async () => {
    await using store = await open();
    expect(await store.load(MAIN)).toBe(null);
    expect(await store.load(sub("a"))).toBe(null);
  });

  test("several appends keep their order", async () => {
    await using store = await open();
    await store.append(MAIN, [entry("a")]);
    await store.append(MAIN, [entry("b"), entry("c")]);
    await store.append(MAIN, [entry("d")]);
    expect(await store.load(MAIN)).toEqual(["a", "b", "c", "d"].map((type) => entry(type)));
  });

  test("an append of nothing changes nothing", async () => {
    await using store = await open();
    await store.append(MAIN, []);
    expect(await store.load(MAIN)).toBe(null);
    await store.append(MAIN, [entry("a")]);
    await store.append(MAIN, []);
    expect(await store.load(MAIN)).toEqual([entry("a")]);
  });

  test("sub-agents are stored apart from the session", async () => {
    await using store = await open();
    await store.append(MAIN, [entry("main")]);
    await store.append(sub("x"), [entry("sub")]);
    expect(await store.load(MAIN)).toEqual([entry("main")]);
    expect(await store.load(sub("x"))).toEqual([entry("sub")]);
  });

  test("projects are stored apart from each other", async () => {
    await using store = await open();
    for (const projectKey of ["A", "B"]) await store.append({ projectKey, sessionId: "s" }, [entry(projectKey)]);
    for (const projectKey of ["A", "B"])
      expect(await store.load({ projectKey, sessionId: "s" })).toEqual([entry(projectKey)]);
  });

  test("listSessions lists the sessions of a project", async () => {
    await using store = await open();
    await store.append({ projectKey: "P", sessionId: "s1" }, [entry("a")]);
    await store.append({ projectKey: "P", sessionId: "s2" }, [entry("b")]);
    await store.append({ projectKey: "Q", sessionId: "s3" }, [entry("c")]);
    const listed = await store.listSessions("P");
    expect(listed.map(({ sessionId }) => sessionId).sort()).toEqual(["s1", "s2"]);
    expect(listed.every(({ mtime }) => Number.isInteger(mtime) && mtime > 1e12)).toBe(true);
    expect(await store.listSessions("never seen")).toEqual([]);
  });

  test("listSessions leaves out sub-agents", async () => {
    await using store = await open();
    await store.append(sub("x", { projectKey: "P", sessionId: "s1" }), [entry("sub")]);
    expect(await store.listSessions("P")).toEqual([]);
  });

  test("a deleted session loads as null", async () => {
    await using store = await open();
    await store.append(MAIN, [entry("a")]);
    await store.delete(MAIN);
    expect(await store.load(MAIN)).toBe(null);
    await store.delete({ projectKey: "x", sessionId: "never" });
  });

  test("delete takes the sub-agents of the session with it, and nothing else", async () => {
    await using store = await open();
    const others = [
      { projectKey: "proj", sessionId: "other" },
      { projectKey: "proj2", sessionId: "sess" },
    ];
    for (const key of [MAIN, sub("a"), sub("b"), ...others]) await store.append(key, [entry(key.sessionId)]);
    await store.delete(MAIN);
    for (const key of [MAIN, sub("a"), sub("b")]) expect(await store.load(key)).toBe(null);
    for (const key of others) expect(await store.load(key)).toEqual([entry(key.sessionId)]);
    expect(await store.listSubkeys(MAIN)).toEqual([]);
  });

  test("delete of a sub-agent removes only that one", async () => {
    await using store = await open();
    for (const key of [MAIN, sub("a"), sub("b")]) await store.append(key, [entry(key.subpath ?? "main")]);
    await store.delete(sub("a"));
    expect(await store.load(MAIN)).toEqual([entry("main")]);
    expect(await store.load(sub("a"))).toBe(null);
    expect(await store.load(sub("b"))).toEqual([entry("subagents/b")]);
  });

  test("listSubkeys lists the sub-agents of the session", async () => {
    await using store = await open();
    const other = sub("c", { projectKey: "proj", sessionId: "other" });
    for (const key of [sub("a"), sub("b"), other]) await store.append(key, [entry("sub")]);
    expect((await store.listSubkeys(MAIN)).sort()).toEqual(["subagents/a", "subagents/b"]);
  });

  test("listSubkeys leaves out the session itself", async () => {
    await using store = await open();
    await store.append(MAIN, [entry("main")]);
    expect(await store.listSubkeys(MAIN)).toEqual([]);
    expect(await store.listSubkeys({ projectKey: "x", sessionId: "never" })).toEqual([]);
  });
}
