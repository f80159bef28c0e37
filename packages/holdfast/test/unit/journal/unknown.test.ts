import { describe, expect, test } from "vitest";
import { Ledger } from "../../../src/journal/ledger.ts";
import { assertFormat } from "../../../src/journal/lifecycle.ts";
import { decideTail } from "../../../src/journal/lines/tail.ts";
import { AT, line, scanOf, sealedLine, seqsOf } from "./journals.ts";

/** C21, the journal's part: what is not known is kept and passed over, and the next seq is still right. */

describe("C21: records of a newer minor version", () => {
  const header = line(1, { kind: "segment", format: "1.9", synced: 1, fresh: [1] });
  const parts = [
    header,
    line(2, { kind: "hologram", data: { deep: true } }),
    sealedLine(`{"seq":3,"at":"${AT}","kind":"note","unheardOf":null`),
    sealedLine(`{"seq":4,"at":"${AT}","newEnvelopeMember":7,"kind":"a"`),
    line(5, { kind: "x", unit: 2, must: true }),
    line(6, { kind: "" }),
  ];

  test("are whole, in order, and as they were", () => {
    const scan = scanOf(...parts);
    expect(scan.strays).toEqual([]);
    expect(seqsOf(scan.records)).toEqual([1, 2, 3, 4, 5, 6]);
    expect(scan.records.map((record) => JSON.stringify(record))).toEqual(
      parts.map((part) => part.toString().trimEnd()),
    );
    expect(() => assertFormat(scan.records[0]!)).not.toThrow();
  });

  test("take part in units and marks, and the next seq counts them", () => {
    const scan = scanOf(...parts);
    expect(decideTail(scan, { sealed: false })).toMatchObject({ keep: 6, cut: null, next: 7 });
    const ledger = new Ledger({ clock: () => 0 });
    for (const record of scan.records) ledger.absorb(record);
    expect(ledger.prepare([{ kind: "a" }])).toMatchObject({ seq: 7 });
  });

  test("can be appended by a caller that knows them", () => {
    const ledger = new Ledger({ clock: () => 0 });
    const bytes = Buffer.from(ledger.prepare([{ kind: "hologram", must: true, data: 1 }]).bytes);
    expect(scanOf(bytes).records[0]).toMatchObject({ kind: "hologram", must: true, data: 1 });
  });
});
