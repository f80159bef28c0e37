import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { cycleIn, drawGraphs, fileGraphOf, graphOf } from "./graph.ts";
import { findLargeRooms } from "./rules/rooms.ts";
import { checkTestFolders } from "./rules/test-folders.ts";
import { checkFile, checkLockFile, checkManifest, type Violation } from "./rules.ts";

/** `npm run check`: the rules of the layers. `-- --graph` also draws the rooms of each package into docs/graph.svg. */

/** The packages whose rooms are small enough to find one's way in. */
const SMALL_ROOMS = ["acp", "cli", "doctor", "holdfast", "postgres", "server"].map((name) => `packages/${name}/src/`);

const files = execFileSync("git", ["ls-files", "--cached", "--others", "--exclude-standard"], {
  encoding: "utf8",
})
  .split("\n")
  // What is deleted, and not yet staged, is still listed.
  .filter((path) => existsSync(path));
const found: Violation[] = [];
const sources: { path: string; text: string }[] = [];
const lines = new Map<string, number>();
let checked = 0;
for (const path of new Set(files)) {
  const check = path.endsWith("package.json")
    ? checkManifest
    : path.endsWith("package-lock.json")
      ? checkLockFile
      : /\.tsx?$/.test(path)
        ? checkFile
        : null;
  if (!check) continue;
  checked++;
  const text = readFileSync(path, "utf8");
  if (/^packages\/[^/]+\/src\//.test(path)) sources.push({ path, text });
  lines.set(path, text.split("\n").length);
  found.push(...check(path, text));
}
found.push(...checkTestFolders([...new Set(files)]));
for (const folder of SMALL_ROOMS) {
  for (const { room, rule } of findLargeRooms(folder, lines)) found.push({ path: folder + room, line: 1, rule });
}
const packages = [...new Set(sources.map(({ path }) => path.split("/")[1]!))];
const graphs = packages.map((name) => [name, graphOf(sources, name)] as const);
for (const [name, graph] of graphs) {
  const cycle = cycleIn(graph);
  const rule = `its rooms import each other in a circle: ${cycle?.map((room) => room.split("/").at(-1)).join(" → ")}`;
  if (cycle) found.push({ path: `packages/${name}/src`, line: 1, rule });
  const circle = cycleIn(fileGraphOf(sources, name));
  if (circle)
    found.push({ path: circle[0]!, line: 1, rule: `files import each other in a circle: ${circle.join(" → ")}` });
}
for (const { path, line, rule } of found) console.error(`${path}:${line}: ${rule}`);
if (found.length > 0) process.exit(1);
if (process.argv.includes("--graph")) {
  writeFileSync("docs/graph.svg", drawGraphs(graphs));
  console.log("docs/graph.svg is drawn");
}
console.log(`${checked} files keep the rules of the layers`);
