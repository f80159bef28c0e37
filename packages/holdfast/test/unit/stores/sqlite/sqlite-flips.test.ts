import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { openStore } from "holdfast";
import { openSqliteStore } from "holdfast/internal";
import { describe, expect, test } from "vitest";
import { place } from "../../../place.ts";
import { seedOf } from "../../../seed.ts";
import { examine, type Known } from "./sqlite-flips.ts";

const seed = seedOf(import.meta.url, "unit");
/** HOLDFAST_FLIPS=5000 looks at as many. */
const FLIPS = Number(process.env["HOLDFAST_FLIPS"] ?? 60);

const X = "x".charCodeAt(0);
const WORDS = ["alpha", "bravo", "charlie", "delta", "echo"];

/** Sessions of all kinds: short, long, compacted, with pages of their own, not closed; and one in the trash. */
async function build(file: string): Promise<Known[]> {
  const url = `sqlite:${file}`;
  const ids: string[] = [];
  {
    await using store = await openStore(url, { durability: "process" });
    for (const [i, word] of WORDS.entries()) {
      await using session = await store.create({ dialect: "anthropic", title: `about ${word}`, cwd: `/work/${word}` });
      ids.push(session.id);
      for (let turns = 0; turns < 1 + i * 2; turns++) {
        const turn = await session.startTurn({ role: "user", content: `${word} ${turns}` });
        await turn.append({ role: "assistant", content: `${word} ${"x".repeat(i === 3 ? 9000 : 30)}` });
        await turn.end();
      }
      if (i === 2) await session.replace([{ role: "user", content: `${word} in short` }], { reason: "compaction" });
    }
    const gone = await store.create({ dialect: "anthropic" });
    await gone.close();
    await store.delete(gone.id);
  }
  // One that its writer has left: its row is behind its lines.
  const behind = ids[1]!;
  {
    await using journals = await openSqliteStore(file);
    const { journal } = await journals.open(behind);
    await journal.append({ kind: "note", text: "bravo again" });
    const { head } = journal;
    await journals.close();
    const sqlite = new DatabaseSync(file);
    sqlite.exec(`DELETE FROM lines WHERE place & 0xffffffff > ${head} AND place >> 32 = 2`);
    sqlite.exec("UPDATE sessions SET closed = 0, head = 3 WHERE key = 2; PRAGMA wal_checkpoint(TRUNCATE)");
    sqlite.close();
  }
  await using store = await openStore(url);
  await using journals = await openSqliteStore(file);
  const known: Known[] = [];
  for (const [i, id] of ids.entries()) {
    const records = [];
    for await (const record of store.history(id)) records.push(record);
    const from = (await journals.read(id)).records[0]!.seq;
    known.push({ id, word: WORDS[i]!, messages: JSON.stringify((await store.read(id)).messages), records, from });
  }
  return known;
}

test(`P9: one flipped bit, ${FLIPS} times: typed, contained, and never in silence`, {
  timeout: 60_000 + FLIPS * 2000,
}, async () => {
  using here = place();
  const known = await build(join(here.path, "whole.db"));
  const whole = readFileSync(join(here.path, "whole.db"));
  const file = join(here.path, "flipped.db");
  expect(await examine(file, whole, known)).toEqual([]);
  const random = randomOf(seed);
  const found: Record<string, string[]> = {};
  for (let i = 0; i < FLIPS; i++) {
    let at = random(whole.length);
    // Most of it is empty, or text that a checksum covers. Rather something that SQLite goes by.
    for (let tries = random(6); tries > 0 && (whole[at] === 0 || whole[at] === X); tries--) at = random(whole.length);
    const bit = random(8);
    const bytes = Buffer.from(whole);
    bytes[at] = bytes[at]! ^ (1 << bit);
    const faults = await examine(file, bytes, known);
    if (faults.length > 0) found[`bit ${bit} of byte ${at}`] = faults;
  }
  expect(found).toEqual({});
});

describe("P9, C22: one flipped bit in a place that matters", () => {
  /** Where the id of a session stands in the file. */
  const placesOf = (bytes: Buffer, id: string): number[] => {
    const places: number[] = [];
    for (let at = bytes.indexOf(id); at !== -1; at = bytes.indexOf(id, at + 1)) places.push(at);
    return places;
  };
  const flipped = (bytes: Buffer, at: number, bit: number): Buffer => {
    const copy = Buffer.from(bytes);
    copy[at] = copy[at]! ^ (1 << bit);
    return copy;
  };

  test("in the id, wherever it stands: the session keeps it, and verify names the place", async () => {
    using here = place();
    const known = await build(join(here.path, "whole.db"));
    const whole = readFileSync(join(here.path, "whole.db"));
    const file = join(here.path, "flipped.db");
    const { id } = known[2]!;
    const damaged: string[] = [];
    for (const at of placesOf(whole, id)) {
      expect(await examine(file, flipped(whole, at + 5, 0), known)).toEqual([]);
      writeFileSync(file, flipped(whole, at + 5, 0));
      await using store = await openSqliteStore(file);
      damaged.push(...(await store.verify(id)).damaged.map(({ segment }) => segment));
    }
    // The table, its indexes, and the headers of the two segments, which have a checksum.
    expect(damaged.sort()).toEqual(["000001", "000002", ...Array(3).fill("database"), ...Array(3).fill("sessions")]);
  });

  test.each([
    ["in the middle", 6],
    ["at the end", 8],
  ])(
    "in the place of a line %s, which moves it by half a billion: it is missing, and nobody looks for more",
    async (_, seq) => {
      using here = place();
      const known = await build(join(here.path, "whole.db"));
      const whole = readFileSync(join(here.path, "whole.db"));
      const file = join(here.path, "flipped.db");
      // The place of a line of the first session, as SQLite writes it: 1 << 32 and the seq, in groups of seven bits.
      const at = whole.indexOf(Buffer.from([0x90, 0x80, 0x80, 0x80, seq]));
      const bytes = flipped(whole, at, 1);
      expect(await examine(file, bytes, known)).toEqual([]);
      writeFileSync(file, bytes);
      await using store = await openSqliteStore(file);
      expect((await store.verify(known[0]!.id)).missing).toEqual([{ from: seq, to: seq }]);
    },
  );

  test("in the place of the last line of a session whose row is behind: the line is missing, and its seq is used", async () => {
    using here = place();
    const known = await build(join(here.path, "whole.db"));
    const whole = readFileSync(join(here.path, "whole.db"));
    const file = join(here.path, "flipped.db");
    const { id, records } = known[1]!;
    const { seq } = records.at(-1)!;
    const at = whole.indexOf(Buffer.from([0xa0, 0x80, 0x80, 0x80, seq]));
    const bytes = flipped(whole, at + 3, 6);
    expect(await examine(file, bytes, known)).toEqual([]);
    writeFileSync(file, bytes);
    await using store = await openSqliteStore(file);
    expect((await store.verify(id)).missing).toEqual([{ from: seq, to: seq }]);
  });

  test("in what says that a session is deleted: it is not, and garbage collection refuses", async () => {
    using here = place();
    const known = await build(join(here.path, "whole.db"));
    const whole = readFileSync(join(here.path, "whole.db"));
    const file = join(here.path, "flipped.db");
    const { id } = known[3]!;
    const reported: string[][] = [];
    for (const at of placesOf(whole, id)) {
      // In the table the types of `trashed` and `written` stand directly before the id: 0 is null, and 8 is the number
      // 0.
      if (whole[at - 1] !== 0 || whole[at - 2] !== 0) continue;
      const bytes = flipped(whole, at - 2, 3);
      expect(await examine(file, bytes, known)).toEqual([]);
      writeFileSync(file, bytes);
      await using store = await openSqliteStore(file);
      await expect(store.gc({ graceMs: 0 })).rejects.toMatchObject({ code: "JOURNAL_UNREADABLE" });
      reported.push((await store.verify(id)).damaged.map(({ segment }) => segment));
    }
    expect(reported).toEqual([["sessions"]]);
  });
});

function randomOf(start: number): (below: number) => number {
  let state = start >>> 0;
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}
