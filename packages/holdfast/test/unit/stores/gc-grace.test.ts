import { join } from "node:path";
import { newId } from "holdfast";
import { openFolderStore, openMemoryStore, openSqliteStore } from "holdfast/internal";
import { expect, test } from "vitest";
import { place } from "../../place.ts";

const WEEK_MS = 7 * 24 * 3600 * 1000;
const MINUTE_MS = 60 * 1000;

test.each([
  ["folder", (path: string, clock: () => number) => openFolderStore(path, { clock })],
  ["sqlite", (path: string, clock: () => number) => openSqliteStore(path, { clock })],
  ["memory", (_: string, clock: () => number) => openMemoryStore({ clock })],
])("gc of a %s store keeps what was deleted for a week", async (_, open) => {
  using here = place();
  const deletedMs = Date.now();
  let nowMs = deletedMs;
  await using store = await open(join(here.path, "store"), () => nowMs);
  const id = newId();
  await (await store.create(id, [{ kind: "session" }])).close();
  await store.delete(id);
  nowMs = deletedMs + WEEK_MS - MINUTE_MS;
  expect(await store.gc()).toEqual({ removed: [] });
  nowMs = deletedMs + WEEK_MS + MINUTE_MS;
  expect(await store.gc()).toEqual({ removed: [id] });
});
