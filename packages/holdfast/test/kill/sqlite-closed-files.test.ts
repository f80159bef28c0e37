import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface, type Interface } from "node:readline";
import type { Readable } from "node:stream";
import { openSqliteStore } from "holdfast/internal";
import { describe, expect, test } from "vitest";
import { place } from "../place.ts";

const CLOSER = join(import.meta.dirname, "sqlite-closer.ts");
const EFFORT = Number(process.env["HOLDFAST_EFFORT"] ?? 1);

interface Running {
  readonly pid: number;
  /** The highest number that it says is acknowledged, by session; and under `refused`, who had the store. */
  readonly said: Promise<Map<string, number>>;
  /** Resolves when it has said something. */
  readonly started: Promise<unknown>;
  end(): void;
}

function start(...parameters: string[]): Running {
  const child = spawn(process.execPath, ["--conditions=holdfast-source", CLOSER, ...parameters], {
    stdio: ["pipe", "inherit", "inherit", "pipe"],
  });
  const lines = createInterface(child.stdio[3] as Readable);
  return { pid: child.pid!, said: heard(child, lines), started: once(lines, "line"), end: () => child.stdin?.end() };
}

async function heard(child: ChildProcess, lines: Interface): Promise<Map<string, number>> {
  const said = new Map<string, number>();
  lines.on("line", (line) => {
    const [id, i] = line.split(" ") as [string, string];
    said.set(id, Number(i));
  });
  const [code, signal] = (await once(child, "close")) as [number | null, string | null];
  expect([code, signal]).toEqual([0, null]);
  return said;
}

/**
 * SQLite's lock is a POSIX lock, and any `close` of the file drops it. The hard lock stays: without it, both would
 * write to one log, and these tests end with a database that is destroyed.
 */
describe("P1: files of an SQLite store that other code of the process opens, reads and closes", () => {
  const closers = ["this thread", "the thread pool", "a worker"];
  const cases = closers.flatMap((closer) => ["process", "power"].map((durability) => [closer, durability] as const));

  test.each(cases)("closed by %s, under `%s`: others are kept out, and nothing is lost", async (closer, durability) => {
    using here = place();
    const file = join(here.path, "store.db");
    const stays = start(file, durability, "1", "0", closer);
    await stays.started;
    const comers = [1, 2].map(() => start(file, durability, String(2 * EFFORT), "10", "nobody"));
    for (const { said } of comers) expect(await said).toEqual(new Map([["refused", stays.pid]]));
    stays.end();
    const [[id, last]] = [...(await stays.said)] as [[string, number]];
    await using own = await openSqliteStore(file);
    const found = (await own.read(id)).records.flatMap(({ i }) => (i === undefined ? [] : [i]));
    expect(found).toEqual(Array.from({ length: last }, (_, i) => i + 1));
    expect(await own.verify(id)).toMatchObject({ unclean: false, damaged: [], missing: [] });
  });
});
