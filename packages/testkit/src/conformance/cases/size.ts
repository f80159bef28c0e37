import assert from "node:assert/strict";
import { newId } from "holdfast";
import { type Case, conformanceCase } from "../case.ts";
import { note, textsOf } from "../notes.ts";
import { all } from "../trial.ts";

const LARGE_BYTES = 50 * 1000 * 1000;

export const size: readonly Case[] = [
  conformanceCase(
    "size: a record of 50 MB is stored, and comes back",
    ["C28"],
    async (trial) => {
      const store = await trial.open();
      const id = newId();
      const journal = await store.create(id, []);
      const text = "0123456789".repeat(LARGE_BYTES / 10);
      await journal.append(note("before"));
      await journal.append(note(text));
      await journal.append(note("after"));
      await store.close();
      const again = await trial.open();
      const { records } = await again.open(id);
      const [before, large, after] = textsOf(records);
      assert.equal(before, "before");
      assert.equal(after, "after");
      assert.ok(large === text, "the large text came back changed");
      assert.ok(textsOf(await all(again.history(id)))[1] === text, "the large text came back changed");
      assert.ok((await again.verify(id)).bytes > LARGE_BYTES);
    },
    { heavy: true },
  ),
];
