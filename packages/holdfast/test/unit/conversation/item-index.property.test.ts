import fc from "fast-check";
import { expect, test } from "vitest";
import { type Item, ItemIndex } from "../../../src/conversation/item.ts";
import { holds, seedOf } from "../../seed.ts";

const seed = seedOf(import.meta.url, "unit");

const item = (id: string): Item<unknown> => ({ entry: { id } }) as Item<unknown>;

test("whatever is added, looked for and removed, in any order: as a map would answer", () => {
  const id = fc.oneof(fc.constantFrom("", "a", "b", "~", "msg_9", "msg_10"), fc.string({ maxLength: 3 }));
  const step = fc.tuple(fc.constantFrom("add", "add", "add", "find", "has", "remove"), id);
  holds(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const index = new ItemIndex<unknown>();
      const map = new Map<string, Item<unknown>>();
      for (const [what, id] of steps) {
        const known = map.get(id);
        if (what === "find") expect(index.find(id)).toBe(known ?? null);
        else if (what === "has") expect(index.has(id)).toBe(known !== undefined);
        else if (what === "remove" && known) {
          index.remove(known);
          map.delete(id);
        } else if (what === "add" && !known) {
          const added = item(id);
          index.add(added);
          map.set(id, added);
        }
      }
      for (const [id, known] of map) expect(index.find(id)).toBe(known);
    }),
    seed,
    2000,
  );
});
