import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { newId } from "holdfast";
import { openSqliteStore } from "holdfast/internal";
import { expect, test } from "vitest";
import { isSqliteError } from "../../../../../src/stores/sqlite/database/failure.ts";
import { findSession } from "../../../../../src/stores/sqlite/rows/catalogue.ts";
import { Rows } from "../../../../../src/stores/sqlite/rows/rows.ts";
import { place } from "../../../../place.ts";

const PAGE_BYTES = 4096;
/** The head of a page and the places of its cells. */
const HEAD_BYTES = 60;

function rootsOf(file: string): number[] {
  const sqlite = new DatabaseSync(file, { readOnly: true });
  const roots = sqlite.prepare("SELECT rootpage FROM sqlite_schema WHERE tbl_name = 'sessions' AND rootpage > 0").all();
  sqlite.close();
  return roots.map(({ rootpage }) => Number(rootpage));
}

/** Which of the sessions are not found; empty also if the file is refused. */
function lostIn(file: string, ids: readonly string[]): string[] {
  const sqlite = new DatabaseSync(file);
  try {
    sqlite.exec("PRAGMA cell_size_check=ON");
    const rows = new Rows(sqlite);
    return ids.filter((id) => findSession(rows, id)?.id !== id);
  } catch (error) {
    if (!isSqliteError(error)) throw error;
    return [];
  } finally {
    sqlite.close();
  }
}

test("P9: with any one bit of the list of sessions or of its indexes flipped, no session is lost", {
  timeout: 120_000,
}, async () => {
  using here = place();
  const file = join(here.path, "store.db");
  const ids = [newId(), newId(), newId(), newId()];
  {
    await using store = await openSqliteStore(file);
    for (const id of ids) await (await store.create(id, [{ kind: "note" }])).close();
  }
  const whole = readFileSync(file);
  const flipped = join(here.path, "flipped.db");
  const lost: Record<string, string[]> = {};
  for (const root of rootsOf(file)) {
    for (let i = 0; i < PAGE_BYTES * 8; i++) {
      const at = (root - 1) * PAGE_BYTES + (i >> 3);
      if (whole[at] === 0 && i >> 3 > HEAD_BYTES) continue;
      const bytes = Buffer.from(whole);
      bytes[at] = bytes[at]! ^ (1 << (i & 7));
      rmSync(`${flipped}-wal`, { force: true });
      writeFileSync(flipped, bytes);
      const found = lostIn(flipped, ids);
      if (found.length > 0) lost[`bit ${i & 7} of byte ${at}`] = found;
    }
  }
  expect(lost).toEqual({});
});
