import fc from "fast-check";
import { type Folder, folderOf, folderPlan } from "./packages/holdfast/test/corpus/random-folders.ts";
import { readTwice } from "./packages/holdfast/test/corpus/two-readings.ts";
import { isDeepStrictEqual } from "node:util";
const seed = Number(process.argv[2]), runs = Number(process.argv[3]);
const counts: Record<string, number> = {};
const started = Date.now();
const norm = (x: any) => JSON.parse(JSON.stringify(x));
async function differ(folder: Folder) {
  const r = await readTwice(folder);
  for (const x of r) { const { second, store } = norm(x); if (!isDeepStrictEqual(second, store)) return { second, store, which: x.when }; }
  return null;
}
const result = await fc.check(fc.asyncProperty(folderPlan, async (plan) => (await differ(folderOf(plan))) === null), { seed, numRuns: runs });
console.log(result.failed, result.numRuns, result.numShrinks, Date.now() - started, "ms", "seed", seed, counts);
if (result.failed) {
  const plan = result.counterexample![0];
  if (result.errorInstance && !/returning false/.test(String(result.errorInstance))) console.log(String((result.errorInstance as any).stack).split("\n").slice(0, 6).join("\n"));
  const folder = folderOf(plan);
  for (const [n, b] of folder) { console.log("--", n, b.length); console.log(n.endsWith(".zst") ? b.toString("hex") : b.toString("latin1").replaceAll("\0", "␀").replaceAll("\r", "␍").replaceAll(/"at":"[^"]*",/g, "").replaceAll(/"session":"[^"]*",/g, "")); }
  try { const d: any = await differ(folder); console.log(d.which); for (const k of Object.keys({ ...d.second, ...d.store })) { const same = isDeepStrictEqual(d.second[k], d.store[k]); console.log(same ? "  " : "# ", k, JSON.stringify(d.second[k]), same ? "" : JSON.stringify(d.store[k])); } } catch (e) { console.log("threw", (e as any).code, (e as Error).message); }
}
