import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { seedOf } from "../../../../holdfast/test/seed.ts";
import { SCHEMA } from "../../../src/agents/opencode/schema.ts";
import { DatabaseCopy } from "../../../src/files/database.ts";
import { Door } from "../../../src/files/door.ts";
import { type PagesOfDatabase, pagesOf } from "../../damage/database-pages.ts";
import { seeded } from "../../damage/line-damage.ts";
import { listRecordings, placeRecording } from "../../real/recording.ts";

const SEED = seedOf(import.meta.url, "unit");
const PLACES = 4 * Number(process.env["HOLDFAST_EFFORT"] ?? 1);
const HEADER_BYTES = 100;
let scratch = "";
let count = 0;
beforeAll(() => {
  scratch = mkdtempSync(join(tmpdir(), "holdfast-salvage-"));
});
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

type Random = () => number;

interface Harm {
  readonly bytes: Buffer;
  /** Pages of which something is changed. */
  readonly pages: ReadonlySet<number>;
}

interface Kind {
  readonly name: string;
  harm(from: PagesOfDatabase, random: Random): Harm;
}

const pick = (random: Random, below: number): number => Math.floor(random() * below);

function harmPages(from: PagesOfDatabase, pages: readonly number[], change: (page: Buffer) => void): Harm {
  const bytes = Buffer.from(from.bytes);
  for (const page of pages) change(bytes.subarray((page - 1) * from.size, page * from.size));
  return { bytes, pages: new Set(pages) };
}

const somePages = (from: PagesOfDatabase, random: Random, most: number): number[] =>
  Array.from({ length: 1 + pick(random, most) }, () => 1 + pick(random, from.bytes.length / from.size));

const KINDS: readonly Kind[] = [
  {
    name: "a page of zeros",
    harm: (from, random) => harmPages(from, somePages(from, random, 1), (page) => page.fill(0)),
  },
  {
    name: "several pages of zeros",
    harm: (from, random) => harmPages(from, somePages(from, random, 12), (page) => page.fill(0)),
  },
  {
    name: "pages of noise",
    harm: (from, random) =>
      harmPages(from, somePages(from, random, 4), (page) =>
        page.set(Buffer.from(Array.from(page, () => pick(random, 256)))),
      ),
  },
  {
    name: "some bytes changed",
    harm: (from, random) =>
      harmPages(from, somePages(from, random, 3), (page) => {
        for (let n = 0; n < 8; n++) page.writeUInt8(pick(random, 256), pick(random, page.length));
      }),
  },
  {
    name: "one page over another",
    harm: (from, random) => {
      const [other] = somePages(from, random, 1);
      const content = Buffer.from(from.bytes.subarray((other! - 1) * from.size, other! * from.size));
      return harmPages(from, somePages(from, random, 1), (page) => content.copy(page));
    },
  },
  {
    name: "the header overwritten",
    harm: (from, random) => {
      const bytes = Buffer.from(from.bytes);
      for (let at = 0; at < HEADER_BYTES; at++) bytes.writeUInt8(random() < 0.5 ? 0 : pick(random, 256), at);
      return { bytes, pages: new Set() };
    },
  },
  {
    name: "its end missing",
    harm: (from, random) => {
      const length = pick(random, from.bytes.length);
      const first = Math.floor(length / from.size) + 1;
      const lost = Array.from({ length: from.bytes.length / from.size - first + 1 }, (_, n) => first + n);
      return { bytes: Buffer.from(from.bytes.subarray(0, length)), pages: new Set(lost) };
    },
  },
];

const isWhole = (needed: ReadonlySet<number>, harmed: ReadonlySet<number>): boolean =>
  [...needed].every((page) => !harmed.has(page));

/** The rows of a damaged database, table by table, as they are read. */
function readRows(bytes: Buffer): ReadonlySet<string> {
  const path = join(scratch, `${count++}.db`);
  writeFileSync(path, bytes);
  using door = new Door();
  const database = DatabaseCopy.open(path, door, SCHEMA);
  using _ = database;
  const rows = new Set<string>();
  for (const table of database.tables().keys())
    for (const row of database.rows(`select * from "${table}"`)) rows.add(`${table} ${JSON.stringify(row)}`);
  rmSync(path);
  return rows;
}

describe("a damaged database", () => {
  const STORIES = ["work", "subagent", "two"];
  for (const [index, { name, harm }] of KINDS.entries())
    test(`${name}: every row whose pages are whole is read`, () => {
      for (const [story, recording] of STORIES.entries()) {
        const from = pagesOf(placed(recording));
        for (let place = 0; place < PLACES; place++) {
          const seed = SEED + 10_000 * index + 1_000 * story + place;
          const { bytes, pages } = harm(from, seeded(seed));
          const rows = readRows(bytes);
          const lost = from.rows.filter(
            ({ table, row, pages: needed }) => isWhole(needed, pages) && !rows.has(`${table} ${row}`),
          );
          expect(
            lost.map(({ table, row }) => `${table} ${row.slice(0, 60)}`),
            `${recording}, seed ${seed}`,
          ).toEqual([]);
        }
      }
    });
});

function placed(story: string): string {
  const recording = listRecordings("opencode").find((each) => each.story === story)!;
  const { home } = placeRecording(recording, join(scratch, `${story}-${count++}`));
  const path = join(home, ".local/share/opencode/opencode.db");
  // Without its log, every row is in the file.
  using database = new DatabaseSync(path);
  database.exec("pragma wal_checkpoint(truncate)");
  return path;
}

describe("a database of many pages", () => {
  function largeAt(name: string): string {
    const path = join(scratch, name);
    using database = new DatabaseSync(path);
    database.exec(`pragma page_size = 1024; create table words (id integer primary key, word text not null, size real);
      create index words_by_word on words (word); create table others (word text, bytes blob); begin`);
    const word = database.prepare("insert into words (word, size) values (?, ?)");
    const other = database.prepare("insert into others values (?, ?)");
    for (let n = 0; n < 4_000; n++) {
      word.run(`heron ${n} ${"x".repeat(n % 40 === 0 ? 5_000 : n % 50)}`, n / 2);
      other.run(n % 3 === 0 ? null : `鷺 ${n}`, Buffer.alloc(n % 7, n));
    }
    database.exec("commit");
    return path;
  }

  test("without a known schema: only the rows of the lost pages are lost, whatever is above them", () => {
    const from = pagesOf(largeAt("large.db"));
    for (let place = 0; place < PLACES; place++) {
      const seed = SEED + 90_000 + place;
      const random = seeded(seed);
      // Page 1 has the names of the tables.
      const pages = somePages(from, random, 40).filter((page) => page > 1);
      const { bytes } = harmPages(from, pages, (page) => page.fill(0));
      const lost = new Set(pages);
      const rows = readRows(bytes);
      const missing = from.rows.filter((each) => isWhole(each.pages, lost) && !rows.has(`${each.table} ${each.row}`));
      expect(
        missing.map(({ row }) => row.slice(0, 60)),
        `seed ${seed}`,
      ).toEqual([]);
    }
  });

  test("a row whose end is lost keeps its beginning", () => {
    const path = largeAt("cut.db");
    const from = pagesOf(path);
    const long = from.rows.find(({ table, pages }) => table === "words" && pages.size > 3)!;
    const third = [...long.pages][3]!;
    const { bytes } = harmPages(from, [third], (page) => page.fill(0));
    const { id, word } = JSON.parse(long.row) as { id: number; word: string };
    const kept = [...readRows(bytes)].find((row) => row.startsWith(`words {"id":${id},`))!;
    const { word: beginning } = JSON.parse(kept.slice("words ".length)) as { word: string };
    expect(word.startsWith(beginning)).toBe(true);
    expect(beginning.length).toBeGreaterThan(1_000);
    expect(beginning.length).toBeLessThan(word.length);
  });

  test("what its log holds counts, and what was deleted does not come back", () => {
    const path = largeAt("logged.db");
    using database = new DatabaseSync(path);
    database.exec("pragma journal_mode = wal; pragma wal_autocheckpoint = 0; delete from others where word is null");
    database.exec("update words set word = 'egret' where id = 77; insert into words (word) values ('newest')");
    using door = new Door();
    const bytes = readFileSync(path);
    writeFileSync(path, bytes.fill(0xff, 20, 40));
    const copy = DatabaseCopy.open(path, door);
    const values = (sql: string): unknown[] => [...copy.rows(sql)].flatMap((row) => Object.values(row));
    expect(values("select word from words where id in (77, 4001)")).toEqual(["egret", "newest"]);
    expect(values("select count(*) from others where word is null")).toEqual([0]);
  });
});
