import type { AnthropicMessage } from "holdfast";
import { openFolderStore } from "holdfast/internal";
import { openStoreWith } from "holdfast/store";
import { expect, test } from "vitest";
import { place } from "../../../place.ts";
import { FailingDisk } from "../session-failures-disk.ts";

/** Steps inside a tool, on a disk that fails. */

async function begin(path: string, disk: FailingDisk) {
  const store = await openStoreWith(
    (options) => openFolderStore(path, { ...options, disk: disk.disk, catalogue: false }),
    { recordsToolStarts: true },
  );
  const session = await store.create<AnthropicMessage>({ dialect: "anthropic" });
  const turn = await session.startTurn({ role: "user", content: "go" });
  await turn.append({ role: "assistant", content: [{ type: "tool_use", id: "a", name: "work", input: {} }] });
  return { store, turn, [Symbol.asyncDispose]: () => store.close().catch(() => {}) };
}

test.each([
  ["write", "STORE_FULL"],
  ["sync", "SYNC_FAILED"],
] as const)("P8: a step whose start cannot be recorded does not run (%s fails)", async (fails, code) => {
  using here = place();
  const disk = new FailingDisk(fails);
  await using at = await begin(here.path, disk);
  const ran: string[] = [];
  const outcome = at.turn.tool("a", async (_, { step }) => {
    disk.countdown = 1;
    return step("charge", () => ran.push("charge"));
  });
  await expect(outcome).rejects.toMatchObject({ code });
  expect(ran).toEqual([]);
  expect(disk.failed).toBe(1);
});
