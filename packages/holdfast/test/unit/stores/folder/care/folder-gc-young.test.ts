import { existsSync, mkdirSync, utimesSync } from "node:fs";
import { join } from "node:path";
import { newId } from "holdfast";
import { openFolderStore } from "holdfast/internal";
import { expect, test } from "vitest";
import { place } from "../../../../place.ts";

test.each([
  ["sessions", true],
  ["incoming", false],
])("S18: gc removes what never became a session from %s after a day, and not before", async (parent, isReported) => {
  using here = place();
  await using store = await openFolderStore(here.path);
  const id = newId();
  const folder = join(here.path, parent, id);
  mkdirSync(folder, { recursive: true });
  const age = (hours: number): void => {
    const time = Date.now() / 1000 - hours * 3600;
    utimesSync(folder, time, time);
  };
  age(23);
  expect(await store.gc()).toEqual({ removed: [] });
  expect(existsSync(folder)).toBe(true);
  age(25);
  expect(await store.gc()).toEqual({ removed: isReported ? [id] : [] });
  expect(existsSync(folder)).toBe(false);
});
