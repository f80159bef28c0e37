import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { isHoldfastError } from "../../../src/errors.ts";
import {
  assertFormat,
  closedRecord,
  LIBRARY_VERSION,
  openedRecord,
  segmentRecord,
} from "../../../src/journal/lifecycle.ts";
import type { JournalRecord } from "../../../src/journal/record.ts";

function header(format: unknown): JournalRecord {
  return { seq: 1, at: "2030-01-01T00:00:00.000Z", kind: "segment", format, crc: "00000000" };
}

function refusal(format: unknown): unknown {
  try {
    assertFormat(header(format));
  } catch (error) {
    if (isHoldfastError(error)) return [error.code, error.facts];
    throw error;
  }
  return null;
}

test("the version that journals name is the version of the package", () => {
  const manifest = JSON.parse(readFileSync(new URL("../../../package.json", import.meta.url), "utf8"));
  expect(LIBRARY_VERSION).toBe(manifest.version);
  expect(segmentRecord({ session: "s", segment: 1, epoch: 1 })["by"]).toBe(`holdfast/${manifest.version}`);
});

test("a header names keys only if there are any", () => {
  const named = { session: "s", segment: 2, epoch: 2 };
  expect(segmentRecord({ ...named, keys: [] })).not.toHaveProperty("keys");
  expect(segmentRecord(named)).not.toHaveProperty("keys");
  expect(segmentRecord({ ...named, keys: [["k", 1, 2]] })).toMatchObject({ kind: "segment", format: "1.1", ...named });
  expect(segmentRecord({ ...named, keys: [["k", 1, 2]] })["keys"]).toEqual([["k", 1, 2]]);
});

test("opened says who writes, and what was found; closed says no more than that", () => {
  const opened = openedRecord({ app: "a", unclean: true, cutBytes: 7, extra: { reason: "r" } });
  expect(opened).toMatchObject({ kind: "opened", writer: { pid: process.pid, app: "a" }, unclean: true, cutBytes: 7 });
  expect(opened["reason"]).toBe("r");
  expect(closedRecord()).toEqual({ kind: "closed" });
});

test("P10: a newer minor version is read, a newer major version is refused in words", () => {
  for (const format of ["1.0", "1.9", "1.999", "0.3"]) expect(refusal(format)).toBeNull();
  for (const format of ["2.0", "10.0"])
    expect(refusal(format)).toEqual(["FORMAT_NEWER", { found: format, known: "1.1" }]);
});

test("P10: a header without a format of the known form is unreadable, not newer", () => {
  for (const format of [undefined, null, 2, "", "2", "1.", ".1", "1.0.0", "v2.0", "1.0\n", ["2.0"], "9".repeat(40)]) {
    expect(refusal(format)).toMatchObject(["JOURNAL_UNREADABLE", { known: "1.1" }]);
  }
});
