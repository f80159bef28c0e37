import { readFileSync } from "node:fs";
import { stripTypeScriptTypes } from "node:module";
import { join, resolve } from "node:path";
import { describe, expect, test } from "vitest";
import { rankBy, readDiff } from "../../../../../scripts/mutate/changes.ts";
import { choose, chooseByRank, randomOf } from "../../../../../scripts/mutate/choose.ts";
import { Bits, coverageOf, testsFor } from "../../../../../scripts/mutate/coverage.ts";
import { addKnown, findKnown, type KnownMutant, misfit, readKnown } from "../../../../../scripts/mutate/known.ts";
import { applyMutant, isValid, type Mutant, mutantsOf } from "../../../../../scripts/mutate/mutant.ts";
import { OPERATORS, type Operator } from "../../../../../scripts/mutate/operators.ts";
import { insertProbes, probeAround } from "../../../../../scripts/mutate/probes.ts";
import { parseRooms } from "../../../../../scripts/mutate/rooms.ts";
import { type Judged, scoresOf, survivorText, tableOf } from "../../../../../scripts/mutate/verdict.ts";

const ROOT = resolve(import.meta.dirname, "../../../../..");

const mutated = (operator: Operator, text: string): string[] =>
  mutantsOf("x.ts", text)
    .filter((mutant) => mutant.operator === operator)
    .map((mutant) => applyMutant(mutant, text));

describe("operators", () => {
  const changes: [operator: Operator, text: string, results: string[]][] = [
    ["negate", "if (a === b) c();", ["if (a !== b) c();"]],
    ["negate", "if (!a) c();", ["if (a) c();"]],
    ["negate", "while (a.b(c)) d();", ["while (!(a.b(c))) d();"]],
    ["negate", "x = a ? b : c;", ["x = !(a) ? b : c;"]],
    ["negate", "x = (n: number) => n < 3;", ["x = (n: number) => n >= 3;"]],
    ["negate", "while (true) a();", []],
    ["logic", "x = a && (b || c);", ["x = a || (b || c);", "x = a && (b && c);"]],
    ["logic", "x = a /* && */ && b;", ["x = a /* && */ || b;"]],
    ["await", "async () => { await a(); };", ["async () => { a(); };"]],
    ["await", "async () => { return await a(); };", []],
    ["await", "async () => { try { return await a(); } catch {} };", ["async () => { try { return a(); } catch {} };"]],
    ["call", "a.b(c);", [";"]],
    ["call", "async () => { await a?.b(); };", ["async () => { ; };"]],
    ["call", "if (a) void b();", ["if (a) ;"]],
    ["call", "class A extends B { constructor() { super(); } }", []],
    ["call", "x = a();", []],
    ["bound", "x = a < b;", ["x = a <= b;"]],
    ["bound", "x = 10;", ["x = 11;", "x = 9;"]],
    ["bound", "x = [0, 2n];", ["x = [1, 2n];", "x = [0, 3n];"]],
    ["bound", "x = 0x1f;", ["x = 0x20;", "x = 0x1e;"]],
    ["bound", "x = { 1: a };", []],
    ["default", "x = a ?? b;", ["x = a;"]],
    ["default", "x = (a ?? b).c;", ["x = (a).c;"]],
    ["default", "x = a ?? undefined;", []],
    ["default", "function f(a?: A, b: B = {}) {}", ["function f(a?: A, b?: B) {}"]],
    ["default", "const { a = 1, b: c = 2 } = d;", ["const { a, b: c = 2 } = d;", "const { a = 1, b: c } = d;"]],
    ["exit", "function f() { if (a) return b; return c; }", ["function f() { if (a) ; return c; }"]],
    ["exit", "for (;;) { if (a) { b = 1; break; } }", ["for (;;) { if (a) { b = 1; ; } }"]],
    ["exit", "function f() { return a; }", []],
    ["literal", "x = ['a', true];", ["x = [];", 'x = ["", true];', "x = ['a', false];"]],
    ["literal", "x = { a };", ["x = {};"]],
    ["literal", 'x = "a sentence"; y = ""; z = []; ', []],
    ["literal", '"use strict"; import a from "b"; export { "c" as d } from "e";', []],
    ["spread", "x = [...a, b];", ["x = [...[], b];"]],
    ["spread", "x = { ...a, b };", ["x = { ...{}, b };"]],
    ["spread", "a(...b);", ["a(...[]);"]],
  ];
  test.each(changes)("%s: %s", (operator, text, results) => {
    expect(mutated(operator, text)).toEqual(results);
  });

  test("each of them has a case above", () => {
    expect(new Set(changes.map(([operator]) => operator))).toEqual(new Set(Object.keys(OPERATORS)));
  });

  test("types and messages are left alone", () => {
    expect(mutantsOf("x.ts", 'type A = "a" | 1; interface B { c: ["d"] } declare const e: 5; let f: 6;')).toEqual([]);
    const count = ["$", '{n === 1 ? "one" : n + 1}'].join("");
    expect(mutantsOf("x.ts", `f = \`there is ${count} left\`;`)).toEqual([]);
    expect(mutantsOf("x.ts", `f = \`${count} left\`;`)).toEqual([]);
    expect(mutantsOf("x.ts", `f = \`SELECT ${count} FROM a\`;`)).not.toEqual([]);
  });

  test("what they make can be parsed, and its types stripped", () => {
    const file = "packages/holdfast/src/journal/id.ts";
    const text = readFileSync(join(ROOT, file), "utf8");
    const mutants = mutantsOf(file, text);
    expect(mutants.length).toBeGreaterThan(20);
    for (const mutant of mutants) {
      expect(isValid(mutant, text)).toBe(true);
      expect(stripTypeScriptTypes(applyMutant(mutant, text))).not.toBe(stripTypeScriptTypes(text));
    }
    expect(isValid({ ...mutants[0]!, text: "((" }, text)).toBe(false);
  });
});

describe("a mutant", () => {
  const text = "class A {\n  #b() {\n    if (c) d();\n    if (c) d();\n  }\n}\n";

  test("names its place, and the lines before and after", () => {
    expect(mutantsOf("x.ts", text)[0]).toMatchObject({
      file: "x.ts",
      line: 3,
      operator: "negate",
      within: "A.#b",
      before: "if (c) d();",
      after: "if (!(c)) d();",
      nth: 1,
    });
  });

  test("has an id that does not depend on its line, and that no other has", () => {
    const ids = mutantsOf("x.ts", text).map(({ id }) => id);
    expect(new Set(ids).size).toBe(4);
    expect(mutantsOf("x.ts", `\n\n// more\n${text}`).map(({ id }) => id)).toEqual(ids);
    expect(mutantsOf("y.ts", text).map(({ id }) => id)).not.toEqual(ids);
  });
});

describe("selection", () => {
  const text = Array.from({ length: 40 }, (_, i) => `if (a${i} < ${i + 1}) b${i}(${i});`).join("\n");
  const mutants = mutantsOf("x.ts", text);
  const idsOf = (chosen: readonly Mutant[]): string[] => chosen.map(({ id }) => id);

  test("the same seed and purpose choose the same mutants; others choose others", () => {
    const chosen = (seed: number, purpose: string): string[] => idsOf(choose(mutants, 12, randomOf(seed, purpose)));
    expect(chosen(1, "a")).toEqual(chosen(1, "a"));
    expect(chosen(1, "a")).not.toEqual(chosen(2, "a"));
    expect(chosen(1, "a")).not.toEqual(chosen(1, "b"));
  });

  test("no mutant twice, and never more than there are", () => {
    const all = idsOf(choose(mutants, Number.POSITIVE_INFINITY, randomOf(1, "")));
    expect(all).toHaveLength(mutants.length);
    expect(new Set(all)).toEqual(new Set(idsOf(mutants)));
  });

  test("operators come by their weights, and not by how often they fit", () => {
    const counts = { negate: 0, bound: 0 };
    const random = randomOf(1, "");
    for (let i = 0; i < 2000; i++) {
      const operator = choose(mutants, 1, random)[0]!.operator;
      if (operator === "negate" || operator === "bound") counts[operator]++;
    }
    expect(counts.negate / counts.bound).toBeCloseTo(OPERATORS.negate.weight / OPERATORS.bound.weight, 0);
  });

  test("changed lines come first, then changed files", () => {
    const diff =
      "--- a/x.ts\n+++ b/x.ts\n@@ -3 +3,2 @@ class\n+a\n+b\n@@ -9,2 +10,0 @@\n--- a/y.ts\n+++ b/y.ts\n@@ -1 +1 @@\n";
    const changes = readDiff(diff);
    expect([...changes]).toEqual([
      ["x.ts", new Set([3, 4])],
      ["y.ts", new Set([1])],
    ]);
    const others = mutantsOf("z.ts", text);
    const chosen = chooseByRank([...others, ...mutants], rankBy(changes), mutants.length + 1, randomOf(1, ""));
    expect(chosen.slice(0, 10).every(({ line }) => line === 3 || line === 4)).toBe(true);
    expect(chosen.map(({ file }) => file)).toEqual([...mutants.map(() => "x.ts"), "z.ts"]);
  });

  test("rooms may have counts of their own", () => {
    expect(parseRooms("a, b/c:40,d:all", 5)).toEqual([
      { name: "a", count: 5 },
      { name: "b/c", count: 40 },
      { name: "d", count: Number.POSITIVE_INFINITY },
    ]);
    expect(() => parseRooms("a:x", 5)).toThrow(/not a number/);
  });
});

describe("probes", () => {
  const text = `let log: string[] = [];
export function run(n: number, extra = (() => 1)()): string {
  if (n === 0) return "none";
  else if (n === 1) { log.push("one"); }
  for (const i of [1]) log.push(String(i));
  switch (n) { case 2: log.push("two"); break; default: }
  const twice = (x: number) => x * 2;
  return String(extra + (n > 5 ? twice(n) : 0));
}
`;
  const probed = insertProbes("x.ts", text, 100, "./probe.ts");
  const hitBy = (n: number): Set<number> => {
    const hits = new Set<number>();
    const code = stripTypeScriptTypes(probed.text)
      .replace(/import .*?;/, "")
      .replace("export ", "");
    new Function("__mutateProbe", "n", `${code}; run(n)`)((number: number) => hits.add(number), n);
    return hits;
  };
  const around = (part: string): number =>
    probeAround(probed.probes, text.indexOf(part), text.indexOf(part) + part.length).number;

  test("no line moves, and the numbers begin where they should", () => {
    expect(probed.text.split("\n")).toHaveLength(text.split("\n").length);
    expect(probed.probes.map(({ number }) => number)).toEqual(probed.probes.map((_, i) => 100 + i));
  });

  test.each([
    ['return "none"', [0]],
    ['log.push("one")', [1]],
    ["n === 1", [1, 2, 9]],
    ["log.push(String(i))", [1, 2, 9]],
    ['log.push("two")', [2]],
    ["x * 2", [9]],
    ["n > 5", [0, 1, 2, 9]],
    ["(() => 1)()", [0, 1, 2, 9]],
    ["let log", [0, 1, 2, 9]],
  ])("%s is run with %j", (part, expected) => {
    expect([0, 1, 2, 9].filter((n) => hitBy(n).has(around(part)))).toEqual(expected);
  });
});

describe("the tests that judge a mutant", () => {
  const text = "const a = 1;\nexport function b() { c(); }\nexport function d() { e(); }\n";
  const { probes } = insertProbes("x.ts", text, 0, "");
  const end = (layer: string, file: string, name: string, ms: number) =>
    ({ layer, file, name, ms, passed: true, message: "" }) as const;
  const tests = coverageOf(
    [
      end("slow", "s.test.ts", "s1", 1),
      end("fast", "f.test.ts", "f1", 50),
      end("fast", "f.test.ts", "f2", 50),
      end("fast", "g.test.ts", "g1", 10),
    ],
    [
      { file: "s.test.ts", name: null, hits: [1] },
      { file: "f.test.ts", name: "f1", hits: [1, 2] },
      { file: "f.test.ts", name: "f2", hits: [2] },
      { file: "g.test.ts", name: "g1", hits: [0, 1] },
    ],
    3,
  );
  const select = (mutant: Mutant, whole: string[] = []) =>
    testsFor(mutant, probes, tests, ["fast", "slow"], new Set(whole)).selection;
  const f1 = { layer: "fast", file: "f.test.ts", names: ["f1"] };
  const g1 = { layer: "fast", file: "g.test.ts", names: ["g1"] };
  const s1 = { layer: "slow", file: "s.test.ts", names: ["s1"] };

  test("are those that run its place, the fastest layer and file first; what runs between tests counts for each", () => {
    expect(select(mutantsOf("x.ts", text).find(({ within }) => within === "b")!)).toEqual([g1, f1, s1]);
    expect(select(mutantsOf("x.ts", text).find(({ within }) => within === "d")!)).toEqual([
      { ...f1, names: ["f1", "f2"] },
    ]);
  });

  test("are all of them if the place runs when the module is loaded", () => {
    expect(select(mutantsOf("x.ts", text).find(({ line }) => line === 1)!)).toEqual([
      g1,
      { ...f1, names: ["f1", "f2"] },
      s1,
    ]);
  });

  test("come with their whole file if they depend on others in it", () => {
    expect(select(mutantsOf("x.ts", text).find(({ within }) => within === "b")!, ["f.test.ts"])).toEqual([
      g1,
      { layer: "fast", file: "f.test.ts" },
      s1,
    ]);
  });

  test("what they hit survives being written down", () => {
    const bits = Bits.fromJSON(JSON.parse(JSON.stringify(Bits.from([0, 9, 17], 18))));
    expect([...Array(20).keys()].filter((number) => bits.has(number))).toEqual([0, 9, 17]);
  });
});

describe("verdicts", () => {
  const [mutant] = mutantsOf("packages/x/src/y.ts", "if (a) b();");
  const judged = (room: string, verdict: Judged["verdict"]): Judged => ({
    room,
    mutant: mutant!,
    verdict,
    by: "",
    tests: 0,
    ms: 0,
  });

  test("equivalent and harmless ones do not count; those that hang count as killed", () => {
    const verdicts = ["killed", "killed", "timed out", "survived", "equivalent", "harmless"] as const;
    const scores = scoresOf([...verdicts.map((verdict) => judged("a", verdict)), judged("b", "harmless")]);
    expect(scores.map(({ room, all, score }) => [room, all, score])).toEqual([
      ["a", 6, 3 / 4],
      ["b", 1, 1],
    ]);
    expect(tableOf(scores)).toBe(
      [
        "room  mutants  killed  timed out  survived  equivalent  harmless    score",
        "a           6       2          1         1           1         1   75.0 %",
        "b           1       0          0         0           0         1  100.0 %",
      ].join("\n"),
    );
  });

  test("a score is never rounded up to the limit", () => {
    const scores = scoresOf(Array.from({ length: 2000 }, (_, i) => judged("a", i < 101 ? "survived" : "killed")));
    expect(tableOf(scores)).toContain("94.9 %");
  });

  test("a survivor is shown with its place, both texts, and the command", () => {
    expect(survivorText(judged("a", "survived"))).toBe(
      [
        "packages/x/src/y.ts:1  negate",
        "    - if (a) b();",
        "    + if (!(a)) b();",
        "    no test runs this place",
        `    npm run mutate -- --mutant ${mutant!.id}`,
      ].join("\n"),
    );
  });
});

describe("known mutants", () => {
  const text = "function f() {\n  if (a) b();\n  if (a) b();\n}\n";
  const mutants = mutantsOf("x.ts", text);
  const entry: KnownMutant = {
    file: "x.ts",
    within: "f",
    operator: "negate",
    before: "if (a) b();",
    after: "if (!(a)) b();",
    verdict: "harmless",
    reason: "Nobody minds.",
  };

  test("are found by their text, wherever it moves", () => {
    const moved = mutantsOf("x.ts", `\n\n${text}`);
    expect(moved.filter((mutant) => findKnown([entry], mutant)).map(({ line }) => line)).toEqual([4]);
    expect(moved.filter((mutant) => findKnown([{ ...entry, nth: 2 }], mutant)).map(({ line }) => line)).toEqual([5]);
    expect(misfit(entry, moved)).toBeNull();
  });

  test("do not fit another text, operator, verdict or place", () => {
    for (const wrong of [{ before: "x" }, { after: "x" }, { within: "g" }, { file: "y.ts" }, { nth: 3 }])
      expect(misfit({ ...entry, ...wrong }, mutants)).toMatch(/no mutant/);
    expect(misfit({ ...entry, operator: "swap" }, mutants)).toMatch(/operator/);
    expect(misfit({ ...entry, verdict: "fine" as "harmless" }, mutants)).toMatch(/verdict/);
    expect(misfit({ ...entry, reason: "because" }, mutants)).toMatch(/sentence/);
  });

  test("are added once, in the order of the files", () => {
    const [first, , second] = mutants;
    const more = mutantsOf("a.ts", text);
    const once = addKnown([], [first!, second!], "harmless", "Nobody minds.");
    expect(once).toEqual([entry, { ...entry, nth: 2 }]);
    const twice = addKnown(once, [first!, more[0]!], "equivalent", "Nobody can tell.");
    expect(twice.map(({ file, nth, verdict }) => [file, nth ?? 1, verdict])).toEqual([
      ["a.ts", 1, "equivalent"],
      ["x.ts", 2, "harmless"],
      ["x.ts", 1, "equivalent"],
    ]);
  });

  test("every one that is recorded still fits the source", () => {
    const known = readKnown();
    const misfits = [...Map.groupBy(known, ({ file }) => file)].flatMap(([file, entries]) => {
      const all = mutantsOf(file, readFileSync(join(ROOT, file), "utf8"));
      return entries.flatMap((one) => {
        const problem = misfit(one, all);
        return problem === null ? [] : [`${one.file}: ${one.before}: ${problem}`];
      });
    });
    expect(misfits).toEqual([]);
    expect(new Set(known.map(({ reason: _, verdict: __, ...place }) => JSON.stringify(place))).size).toBe(known.length);
  });
});
