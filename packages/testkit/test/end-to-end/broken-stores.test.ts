import {
  brokenStores,
  catchersOf,
  conformance,
  conformanceCases,
  goodVariants,
  subjectOf,
} from "@holdfast/testkit/internal/conformance";
import { describe, expect, test } from "vitest";

/** A store that this many cases catch proves little for each of them. */
const BLUNT = 36;

/** For each broken store, the cases that catch it. */
const caught = new Map<string, ReadonlySet<string>>();

describe("the suite passes on good stores, whatever they can do", () => {
  for (const variant of goodVariants) {
    for (const found of conformance(subjectOf(variant))) {
      if (!found.skipped && !found.heavy) test(`${variant.name}: ${found.name}`, found.execute);
    }
  }
});

describe("every broken store is caught: one that", () => {
  for (const broken of brokenStores) {
    test.concurrent(broken.name, async () => {
      const catchers = await catchersOf(broken);
      caught.set(broken.name, new Set(catchers.keys()));
      expect([...catchers.keys()]).not.toEqual([]);
    });
  }
});

describe("every case catches a store that breaks little else", () => {
  for (const { name } of conformanceCases) {
    test(name, () => {
      const sharp = [...caught].filter(([, cases]) => cases.size < BLUNT);
      const stores = sharp.filter(([, cases]) => cases.has(name)).map(([store]) => store);
      expect(stores).not.toEqual([]);
    });
  }
});

test("names are unique", () => {
  const cases = conformanceCases.map(({ name }) => name);
  const stores = [...brokenStores, ...goodVariants].map(({ name }) => name);
  expect(new Set(cases).size).toBe(cases.length);
  expect(new Set(stores).size).toBe(stores.length);
});
