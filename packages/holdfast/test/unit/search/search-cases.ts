import { newId } from "holdfast";
import { describe, expect, test } from "vitest";
import type { Dialect } from "../../../src/dialects/dialect.ts";
import { findDialect } from "../../../src/dialects/index.ts";
import { append, attributes, found, hitsOf, type SearchSite, said, session } from "./search-stores.ts";

/** What a search finds, in whatever store. */
export function describeSearch(kind: string, newSite: () => SearchSite): void {
  describe(`search (${kind} store)`, () => {
    test("tells which session, which message, and shows the words around the hit", async () => {
      await using site = newSite();
      const store = await site.store();
      const id = await session(store, [said("m1", "Why does the build\nfail on Tuesdays?"), said("m2", "No idea.")]);
      expect(await hitsOf(site.index(store), "fail")).toEqual([
        { session: id, message: "m1", excerpt: "Why does the build fail on Tuesdays?" },
      ]);
    });

    test("titles: the newest counts, and a hit has no message", async () => {
      await using site = newSite();
      const store = await site.store();
      const id = await session(store, [{ kind: "session", title: "Fix the parser" }, said("m1", "parser, please")]);
      const index = site.index(store);
      expect(await hitsOf(index, "parser")).toEqual([
        { session: id, message: "", excerpt: "Fix the parser" },
        { session: id, message: "m1", excerpt: "parser, please" },
      ]);
      await append(store, id, { kind: "session", title: "Rewrite the lexer" });
      expect(await found(index, "fix")).toEqual([]);
      expect(await found(index, "lexer")).toEqual([""]);
      await append(store, id, { kind: "session", title: "" });
      expect(await found(index, "lexer")).toEqual([]);
      expect(await found(index, "parser")).toEqual(["m1"]);
    });

    test("the words: all of them, in any order, the last one perhaps unfinished; case and accents do not count", async () => {
      await using site = newSite();
      const store = await site.store();
      await session(store, [
        said("m1", "The quick brown fox at the Café"),
        said("m2", "quick brown bread: foo_bar/baz.ts"),
      ]);
      const index = site.index(store);
      expect(await found(index, "brown QUICK")).toEqual(["m2", "m1"]);
      expect(await found(index, "quick fo")).toEqual(["m2", "m1"]);
      expect(await found(index, "fo quick"), "only the last one").toEqual([]);
      expect(await found(index, "cafe")).toEqual(["m1"]);
      expect(await found(index, "foo_bar/baz.ts")).toEqual(["m2"]);
      expect(await found(index, "bar_foo")).toEqual([]);
      expect(await found(index, "")).toEqual([]);
      expect(await found(index, " ?! ")).toEqual([]);
    });

    test.each([
      '"',
      "quick OR bread",
      "text:quick",
      "NEAR(quick, 2)",
      "-quick",
      "quick*",
      "(quick",
      "{a}: b",
      "\0",
      "'; DROP TABLE texts",
    ])("what a user types is never syntax: %j", async (typed) => {
      await using site = newSite();
      const store = await site.store();
      const text = `see ${typed} here`;
      await session(store, [said("m1", text), said("m2", "quick bread")]);
      const index = site.index(store);
      expect(await found(index, text)).toEqual(["m1"]);
      await found(index, typed);
    });

    test("Chinese, Japanese, Korean and Thai: a part of what is written without spaces is found, from one character on", async () => {
      await using site = newSite();
      const store = await site.store();
      await session(store, [
        said("zh", "请帮我修复构建错误"),
        said("ja", "今日は東京タワーに行きました"),
        said("ko", "서울에서 만나요"),
        said("th", "สวัสดีชาวโลก"),
      ]);
      const index = site.index(store);
      expect(await hitsOf(index, "构建")).toMatchObject([{ message: "zh", excerpt: "请帮我修复构建错误" }]);
      expect(await found(index, "建构")).toEqual([]);
      expect(await found(index, "タワー")).toEqual(["ja"]);
      expect(await found(index, "東京")).toEqual(["ja"]);
      expect(await found(index, "京")).toEqual(["ja"]);
      expect(await found(index, "서울 만나")).toEqual(["ko"]);
      expect(await found(index, "ชาว")).toEqual(["th"]);
    });

    test("only what the user and the model said: no tool traffic, reasoning, instructions, drafts, repairs, edits or prompts that wait", async () => {
      await using site = newSite();
      const store = await site.store();
      const call = { type: "tool_use", id: "c", name: "needle", input: { q: "needle" } };
      const assistant = [
        { type: "thinking", thinking: "needle", signature: "s" },
        { type: "text", text: "I look" },
        call,
      ];
      const result = { type: "tool_result", tool_use_id: "c", content: "needle" };
      const message = { role: "user", content: "needle" };
      await session(store, [
        { kind: "message", id: "a", turn: 1, step: "a", message: { role: "assistant", content: assistant } },
        said("r", [result]),
        { kind: "message", id: "s", turn: 1, step: "s", message: { role: "system", content: "needle" } },
        { kind: "draft", id: "d", turn: 1, n: 0, parts: [{ part: 0, text: "needle" }] },
        { kind: "repair", turn: 1, entries: [{ id: "x", message, synthetic: "boundary" }] },
        { kind: "edit", id: "e", ids: ["a"], shown: [{ id: "y", message }], reason: "shorter" },
        { kind: "queue.put", id: "q", prompt: message },
        { kind: "note", name: "needle", value: "needle" },
        said("z", "needle", { carried: true, synthetic: "boundary" }),
      ]);
      const index = site.index(store);
      expect(await found(index, "needle")).toEqual([]);
      expect(await found(index, "look")).toEqual(["a"]);
    });

    test("records that are not what they should be are passed over", async () => {
      await using site = newSite();
      const store = await site.store();
      await session(store, [
        { kind: "session", title: 7, dialect: null },
        { kind: "message", message: { role: "user", content: "needle" } },
        { kind: "message", id: "", message: { role: "user", content: "needle" } },
        { kind: "message", id: "n", message: null },
        { kind: "patch", id: 5, metadata: { hiddenFromUser: true } },
        { kind: "patch", id: "n", metadata: "no" },
        { kind: "message", id: "m", message: { role: "user", content: "needle" } },
      ]);
      expect(await found(site.index(store), "needle")).toEqual(["m"]);
    });

    test("C25: an excerpt is one harmless line", async () => {
      await using site = newSite();
      const store = await site.store();
      await session(store, [said("m", "\u001b]0;owned\u0007 needle\r\n\u202eevil")]);
      const [hit] = await hitsOf(site.index(store), "needle");
      expect(hit?.excerpt).toBe("\uFFFD]0;owned\uFFFD needle \uFFFDevil");
    });

    test("C28: a message of five megabytes is found by its last word, once, with a short excerpt", async () => {
      await using site = newSite();
      const store = await site.store();
      await session(store, [said("long", `${"lorem ipsum ".repeat(420_000)} needle`)]);
      const index = site.index(store);
      const [hit, ...more] = await hitsOf(index, "needle");
      expect(hit?.message).toBe("long");
      expect(hit?.excerpt.length).toBeLessThan(300);
      expect(more).toEqual([]);
      expect(await found(index, "lorem")).toEqual(["long"]);
    });

    test("a message that an epoch carries is found once; one that it left behind is still found", async () => {
      await using site = newSite();
      const store = await site.store();
      const id = await session(store, [said("m1", "needle one"), said("m2", "needle two")]);
      const index = site.index(store);
      expect(await found(index, "needle")).toEqual(["m2", "m1"]);
      const { journal } = await store.open(id);
      await journal.epoch(() => [
        { kind: "epoch", reason: "compaction", carried: 2, checkpoint: {} },
        attributes(),
        said("s", "a summary with a needle", { carried: true }),
        said("m2", "needle two", { carried: true }),
      ]);
      await journal.close();
      expect(await found(index, "needle")).toEqual(["s", "m2", "m1"]);
      expect(await found(site.index(await site.store()), "needle"), "and from scratch").toEqual(["s", "m2", "m1"]);
    });

    test("what is hidden from the user is not found, until a patch shows it again (C31: in whatever order)", async () => {
      await using site = newSite();
      const store = await site.store();
      const patch = (id: string, metadata: Record<string, unknown>) => ({ kind: "patch", id, metadata });
      const id = await session(store, [
        said("born hidden", "needle", { metadata: { hiddenFromUser: true } }),
        said("hidden later", "needle"),
        patch("patched before", { hiddenFromUser: true }),
        said("patched before", "needle"),
        said("hidden from the model", "needle", { metadata: { hiddenFromModel: true } }),
        patch("hidden later", { hiddenFromUser: true, color: "red" }),
        patch("hidden later", { color: "blue" }),
      ]);
      const index = site.index(store);
      expect(await found(index, "needle")).toEqual(["hidden from the model"]);
      await append(
        store,
        id,
        patch("born hidden", { hiddenFromUser: null }),
        patch("hidden later", { hiddenFromUser: false }),
      );
      expect(await found(index, "needle")).toEqual(["hidden from the model", "hidden later", "born hidden"]);
      const { journal } = await store.open(id);
      await journal.epoch(() => [
        { kind: "epoch", reason: "compaction", carried: 1, checkpoint: {} },
        attributes(),
        said("hidden later", "needle", { carried: true, metadata: { hiddenFromUser: true } }),
      ]);
      await journal.close();
      expect(await found(index, "needle")).toEqual(["hidden from the model", "born hidden"]);
    });

    test("C34: hiding one item of a step hides the step", async () => {
      await using site = newSite();
      const store = await site.store();
      const item = (id: string, message: unknown) => ({ kind: "message", id, turn: 1, step: "step", message });
      await session(store, [
        { kind: "session", dialect: "openai-responses" },
        item("text", { type: "message", role: "assistant", content: [{ type: "output_text", text: "needle" }] }),
        item("call", { type: "function_call", call_id: "c", name: "f", arguments: "{}" }),
        { kind: "patch", id: "call", metadata: { hiddenFromUser: true } },
      ]);
      expect(await found(site.index(store), "needle")).toEqual([]);
    });

    test("newest sessions first, in each the newest message first, however many there are", async () => {
      await using site = newSite();
      const store = await site.store();
      const many = Array.from({ length: 95 }, (_, i) => said(`m${i}`, `needle ${i}`));
      const a = await session(store, many);
      const b = await session(store, many.slice(0, 3));
      const index = site.index(store);
      const newestFirst = many.map(({ id }) => id).reverse();
      expect((await hitsOf(index, "needle")).map((hit) => [hit.session, hit.message])).toEqual([
        ...newestFirst.slice(-3).map((message) => [b, message]),
        ...newestFirst.map((message) => [a, message]),
      ]);
      await append(store, a, { kind: "note", name: "n", value: 1 });
      expect((await hitsOf(index, "needle"))[0]?.session, "a is the newest now").toBe(a);
    });

    test("only wanted sessions; each is asked for once, and none after the last hit that was taken", async () => {
      await using site = newSite();
      const store = await site.store();
      const ids: string[] = [];
      for (let i = 0; i < 4; i++) ids.unshift(await session(store, [said("m1", "needle"), said("m2", "needle")]));
      await session(store, [said("m1", "hay")]);
      const index = site.index(store);
      const asked: string[] = [];
      const hits = await hitsOf(index, "needle", (id) => asked.push(id) > 0 && id !== ids[1]);
      expect(asked).toEqual(ids);
      expect(new Set(hits.map((hit) => hit.session))).toEqual(new Set([ids[0], ids[2], ids[3]]));
      asked.length = 0;
      for await (const hit of index.search("needle", async (id) => asked.push(id) > 0))
        if (hit.session === ids[1]) break;
      expect(asked).toEqual(ids.slice(0, 2));
    });

    test("a session that is deleted is no longer found, one that grows is", async () => {
      await using site = newSite();
      const store = await site.store();
      const gone = await session(
        store,
        Array.from({ length: 600 }, (_, i) => said(`m${i}`, "needle")),
      );
      const kept = await session(store, [said("k1", "needle")]);
      const index = site.index(store);
      expect(await found(index, "needle")).toHaveLength(601);
      await store.delete(gone);
      await append(store, kept, said("k2", "another needle"));
      expect(await found(index, "needle")).toEqual(["k2", "k1"]);
    });

    test("after a power cut other records have the same seqs: the session is read again", async () => {
      await using site = newSite();
      const store = await site.store();
      const index = site.index(store);
      const id = await session(store, [said("m1", "first life"), said("m2", "first life")]);
      expect(await found(index, "first")).toEqual(["m2", "m1"]);
      const lives: [name: string, records: number][] = [
        ["as many records", 2],
        ["fewer", 1],
        ["more", 4],
      ];
      for (const [name, count] of lives) {
        await store.delete(id);
        await session(
          store,
          Array.from({ length: count }, (_, i) => said(`${name} ${i}`, "next life")),
          id,
        );
        expect(await found(index, "first"), name).toEqual([]);
        expect(await found(index, "life"), name).toHaveLength(count);
      }
    });

    test("a dialect of the application's own: without it titles are found; once it is known, messages too", async () => {
      await using site = newSite();
      const store = await site.store();
      const records = [{ kind: "session", dialect: "own", title: "needle" }, said("m", { inner: "needle" })];
      const id = await session(store, records);
      const own = {
        name: "own",
        decode: (stored) => stored,
        role: () => "user",
        text: (message: { content: { inner: string } }) => message.content.inner,
      } as Partial<Dialect<unknown>> as Dialect<unknown>;
      let known = false;
      const index = site.index(store, {
        dialectNamed: (name) => (name === "own" ? (known ? own : null) : findDialect(name)),
      });
      expect(await found(index, "needle")).toEqual([""]);
      known = true;
      expect(await found(index, "needle")).toEqual(["", "m"]);
      await append(store, id, said("broken", null));
      expect(await found(index, "needle"), "one that throws makes its message unfindable").toEqual(["", "m"]);
    });

    test("a closed index, and a closed store, say so", async () => {
      await using site = newSite();
      const store = await site.store();
      await session(store, [said("m", "needle")]);
      const index = site.index(store);
      const hits = index.search("needle");
      await index.close();
      await expect(hits.next()).rejects.toMatchObject({ code: "STORE_CLOSED" });
      index.note(newId());
      await index.settled();
      const other = site.index(store);
      await store.close();
      await expect(other.search("needle").next()).rejects.toMatchObject({ code: "STORE_CLOSED" });
    });
  });
}
