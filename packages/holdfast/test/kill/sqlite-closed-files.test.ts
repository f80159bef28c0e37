import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { DatabaseSync } from "node:sqlite";
import type { Readable } from "node:stream";
import { openSqliteStore } from "holdfast/internal";
import { describe, expect, test } from "vitest";
import { place } from "../place.ts";

const CLOSER = join(import.meta.dirname, "sqlite-closer.ts");
const EFFORT = Number(process.env["HOLDFAST_EFFORT"] ?? 1);

/** What the process says is acknowledged: the highest number by session. */
interface Running {
  readonly acknowledged: Promise<Map<string, number>>;
  end(): void;
}

function start(...parameters: string[]): Running {
  const child = spawn(process.execPath, ["--conditions=holdfast-source", CLOSER, ...parameters], {
    stdio: ["pipe", "inherit", "inherit", "pipe"],
  });
  return { acknowledged: heard(child), end: () => child.stdin?.end() };
}

async function heard(child: ChildProcess): Promise<Map<string, number>> {
  const acknowledged = new Map<string, number>();
  createInterface(child.stdio[3] as Readable).on("line", (line) => {
    const [id, i] = line.split(" ") as [string, string];
    acknowledged.set(id, Number(i));
  });
  const [code, signal] = (await once(child, "close")) as [number | null, string | null];
  expect([code, signal]).toEqual([0, null]);
  return acknowledged;
}

/**
 * SQLite's locks are POSIX locks, and any `close` of a file drops those that the process has on it. On its own, SQLite
 * then deletes the log under a process that still uses it, or lets two write to it at once: without FlagLock these
 * tests end with a database that is destroyed.
 */
describe("P1: files of an SQLite store that other code of the process opens, reads and closes", () => {
  const closers = ["this thread", "the thread pool", "a worker"];
  const cases = closers.flatMap((closer) => ["process", "power"].map((durability) => [closer, durability] as const));

  test.each(cases)("closed by %s, under `%s`: nothing that was acknowledged is lost", async (closer, durability) => {
    using here = place();
    const file = join(here.path, "store.db");
    // One stays, and loses its locks all the time; one comes and goes with its locks in order, and one without.
    const stays = start(file, durability, "1", "0", closer);
    const lives = String(8 * EFFORT);
    const comers = [start(file, durability, lives, "10", "nobody"), start(file, durability, lives, "10", closer)];
    const said = await Promise.all(comers.map(({ acknowledged }) => acknowledged));
    stays.end();
    said.push(await stays.acknowledged);
    const store = await openSqliteStore(file);
    const lost: string[] = [];
    for (const [id, last] of said.flatMap((acknowledged) => [...acknowledged])) {
      const found = new Set((await store.read(id)).records.map(({ i }) => i));
      for (let i = 1; i <= last; i++) if (!found.has(i)) lost.push(`${id} ${i}`);
      expect(await store.verify(id)).toMatchObject({ unclean: false, damaged: [], missing: [] });
    }
    expect(lost).toEqual([]);
    await store.close();
    const sqlite = new DatabaseSync(file);
    expect(sqlite.prepare("PRAGMA integrity_check").all()).toEqual([{ integrity_check: "ok" }]);
    sqlite.close();
  });
});
