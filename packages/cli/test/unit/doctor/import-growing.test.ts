import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { AGENTS, Door } from "@holdfast/doctor";
import { openStore } from "holdfast";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { listRecordings, placeRecording } from "../../../../doctor/test/real/recording.ts";
import { importSession } from "../../../src/doctor/import.ts";

let root = "";
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "holdfast-growing-"));
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

describe("a session that is imported after each of its lines", () => {
  for (const format of ["claude-code", "codex", "copilot", "gemini", "pi"])
    test(`${format}: what is new is added, without a new epoch for each; at the end it is what one import brings`, async () => {
      const recording = listRecordings(format).find(({ story }) => story === "work")!;
      const { home } = placeRecording(recording, root);
      const agent = AGENTS.find(({ name }) => name === format)!;
      using door = new Door();
      const [session] = agent.homes({}, home).flatMap((folder) => [...agent.find(folder, door)]);
      const lines = readFileSync(session!.path, "utf8").split(/(?<=\n)/);
      await using store = await openStore(join(root, "store"), { durability: "process" });
      const watched = new Map<string, string>();
      for (let count = 1; count <= lines.length; count++) {
        writeFileSync(session!.path, lines.slice(0, count).join(""));
        await importSession({ store, keepsFiles: false }, { agent, session: session! }, door, { watched });
      }
      const { id } = await importSession({ store, keepsFiles: false }, { agent, session: session! }, door);
      const journals = readdirSync(join(root, "store/sessions", id)).filter((name) => name.endsWith(".jsonl"));
      await using whole = await openStore(join(root, "whole"), { durability: "process" });
      await importSession({ store: whole, keepsFiles: false }, { agent, session: session! }, door);
      expect((await store.read(id)).messages).toEqual((await whole.read(id)).messages);
      const records = journals.flatMap((name) =>
        readFileSync(join(root, "store/sessions", id, name), "utf8")
          .split("\n")
          .filter((line) => line !== ""),
      );
      // One at most: for the batch of parallel calls, whose results came in another order than the calls.
      expect(records.filter((record) => record.includes('"kind":"epoch"')).length).toBeLessThanOrEqual(1);
    });
});
