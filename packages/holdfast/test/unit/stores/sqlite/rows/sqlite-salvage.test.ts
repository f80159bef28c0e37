import { expect, test } from "vitest";
import type { Database } from "../../../../../src/stores/sqlite/database/database.ts";
import { sqliteFailure } from "../../../../../src/stores/sqlite/database/failure.ts";
import { readChunks } from "../../../../../src/stores/sqlite/rows/reader.ts";
import type { Rows } from "../../../../../src/stores/sqlite/rows/rows.ts";

const failed = (errcode: number): Error => Object.assign(new Error("SQLite failed"), { errcode });
const IOERR = 10;
const CORRUPT = 11;

test.each([
  ["a damaged page costs the line", CORRUPT, { lines: [1, 2, 3].map((seq) => ({ seq, bytes: seq === 2 ? 0 : 4 })) }],
  ["a disk that cannot be read is no damage: it is told", IOERR, { name: "HoldfastError", cause: { errcode: IOERR } }],
])("P9: while lines are read one by one, %s", async (_, errcode, expected) => {
  const rows = {
    readLines: () => {
      throw failed(CORRUPT);
    },
    readLine: (_key: number, seq: number) => {
      if (seq === 2) throw failed(errcode);
      return Buffer.from("line");
    },
  } as unknown as Rows;
  const attempt = <T>(what: string, inside: (of: Rows) => T): T => {
    try {
      return inside(rows);
    } catch (error) {
      throw sqliteFailure(error, what, "store.db", "Nothing was written.");
    }
  };
  const database = { attempt } as Database;
  const read = async (): Promise<unknown> => {
    const lines: unknown[] = [];
    for await (const chunk of readChunks(database, { key: 1, from: 1, to: 3 }))
      lines.push(...chunk.map(({ seq, bytes }) => ({ seq, bytes: bytes.length })));
    return { lines };
  };
  expect(await read().catch((error: unknown) => error)).toMatchObject(expected);
});
