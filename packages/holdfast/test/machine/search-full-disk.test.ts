import { readdirSync } from "node:fs";
import { Machine, mib, whyNoMounts } from "@holdfast/testkit/internal/machine";
import { newId } from "holdfast";
import { openFolderStore } from "holdfast/internal";
import { expect, test } from "vitest";
import { findDialect } from "../../src/dialects/index.ts";
import { SearchIndex } from "../../src/search/search-index.ts";
import { needs } from "./allowed.ts";
import { ballast } from "./ballast.ts";

test("C19: a disk that is full before the index is: everything is found all the same, and turns go on", async (context) => {
  needs(context, "full disk, search", whyNoMounts());
  await using machine = new Machine();
  const place = await machine.tmpfs("full", mib(6));
  await using store = await openFolderStore(place);
  const id = newId();
  const text = (i: number) => `needle ${i} ${Array.from({ length: 300 }, (_, n) => `w${i}x${n}`).join(" ")}`;
  const journal = await store.create(id, [{ kind: "session", dialect: "anthropic" }]);
  for (let i = 0; i < 500; i++) {
    const message = { role: "user", content: text(i) };
    await journal.append({ kind: "message", id: `m${i}`, turn: 1, step: `m${i}`, message }, { durability: "process" });
  }
  const held = ballast(place, 3_000_000);
  const index = new SearchIndex(store, { dialectNamed: findDialect, delayMs: 0 });
  index.note(id);
  await index.settled();
  expect(index.failure, "the index did not fit").toMatchObject({ why: "place" });
  expect(
    readdirSync(place).filter((name) => name.startsWith("search")),
    "it gave its space back",
  ).toEqual([]);
  expect(await Array.fromAsync(index.search("needle"))).toHaveLength(500);
  await journal.append({ kind: "note", name: "after", value: 1 });
  await index.close();

  held.drop();
  const later = new SearchIndex(store, { dialectNamed: findDialect });
  expect(await Array.fromAsync(later.search("needle"))).toHaveLength(500);
  await later.close();
});
