import fc from "fast-check";
import { folderOf, folderPlan } from "./packages/holdfast/test/corpus/random-folders.ts";
import { readTwice } from "./packages/holdfast/test/corpus/two-readings.ts";
let n = 0;
for (const plan of fc.sample(folderPlan, { seed: 5, numRuns: 60 })) {
  const folder = folderOf(plan);
  const r = await readTwice(folder);
  if (!("known" in r) || !/first line/.test(r.known) || ++n > 5) continue;
  console.log("=====");
  for (const [n, b] of folder) { console.log("--", n, b.length); console.log(n.endsWith(".zst") ? "" : b.toString("latin1").replaceAll("\0", "␀").replaceAll("\r", "␍").replaceAll(/"at":"[^"]*",/g, "").replaceAll(/"session":"[^"]*",/g, "").split("\n").slice(0, 3).join("\n")); }
}
