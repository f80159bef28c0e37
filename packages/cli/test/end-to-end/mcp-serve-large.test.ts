import { expect, test } from "vitest";
import { lookup, parts } from "../mcp-lookup.ts";

test("a message of 60 MB: pages stay small, and every character can be read", async () => {
  await using found = await lookup();
  await using session = await found.store.create({ dialect: "ai-sdk" });
  const half = "0123456789abcde\n".repeat(1_875_000);
  const text = `${half}\u{1f600}${half}`;
  const turn = await session.startTurn({ role: "user", content: text });
  await turn.end();
  const read = await found.call("read_session", { session: session.id, chars_per_text: 8000 });
  expect(read.length).toBeLessThan(30_000);
  expect(read).toMatch(/^more: read_text with item 1, part text, offset 8000 \(about 59992002 more characters\)$/m);
  const at = half.length - 10;
  // The smiley is two units at 30,000,000: a piece that would end between them ends before it.
  const before = parts(await found.call("read_text", { session: session.id, item: "1", offset: at, chars: 11 }));
  expect(before.quoted).toBe("6789abcde\n");
  expect(before.own).toContain(`with offset ${at + 10}.`);
  const after = parts(await found.call("read_text", { session: session.id, item: "1", offset: at + 10, chars: 11 }));
  expect(after.quoted).toBe("\u{1f600}012345678");
  expect(after.own).toContain(`Characters ${at + 10} to ${at + 21} of 60000002.`);
  expect(await found.call("read_text", { session: session.id, item: "1", offset: 70_000_000 })).toBe(
    "The text has 60000002 characters, so there is nothing at 70000000.",
  );
});

test("ten thousand sessions: a page reads no more than it shows, and all of them are reached", async () => {
  await using found = await lookup();
  const ids = new Set<string>();
  for (let n = 0; n < 10_000; n++) {
    await using session = await found.store.create({ dialect: "ai-sdk" });
    const turn = await session.startTurn({ role: "user", content: n === 42 ? "the needle" : `hay ${n}` });
    await turn.end();
    ids.add(session.id);
  }
  for (let cursor: string | undefined, page = 0; page === 0 || cursor !== undefined; page++) {
    const text: string = await found.call("list_sessions", { limit: 100, ...(cursor === undefined ? {} : { cursor }) });
    expect(text.length).toBeLessThan(40_000);
    for (const [, id] of text.matchAll(/^session (\S+)$/gm)) expect(ids.delete(id!)).toBe(true);
    const more = /with cursor (".*")\./.exec(text)?.[1];
    cursor = more === undefined ? undefined : (JSON.parse(more) as string);
  }
  expect(ids.size).toBe(0);
  expect(parts(await found.call("search_sessions", { query: "needle" })).own).toContain("1 hit in 1 session");
  const hay = await found.call("search_sessions", { query: "hay", limit: 50, cursor: 950 });
  expect(hay).toContain("more hits than can be listed");
});
