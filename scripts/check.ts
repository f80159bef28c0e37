import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { findLargeRooms } from "./rules/rooms.ts";
import { checkFile, checkLockFile, checkManifest, PACKAGES, type Violation } from "./rules.ts";

const files = execFileSync("git", ["ls-files", "--cached", "--others", "--exclude-standard"], {
  encoding: "utf8",
}).split("\n");
const found: Violation[] = [];
const lines = new Map<string, number>();
let checked = 0;
for (const path of new Set(files)) {
  const check = path.endsWith("package.json")
    ? checkManifest
    : path === "package-lock.json"
      ? checkLockFile
      : /\.tsx?$/.test(path)
        ? checkFile
        : null;
  if (!check) continue;
  checked++;
  const text = readFileSync(path, "utf8");
  lines.set(path, text.split("\n").length);
  found.push(...check(path, text));
}
for (const { sources } of PACKAGES) {
  for (const { room, rule } of findLargeRooms(sources, lines)) found.push({ path: sources + room, line: 1, rule });
}
for (const { path, line, rule } of found) console.error(`${path}:${line}: ${rule}`);
if (found.length > 0) process.exit(1);
console.log(`${checked} files keep the rules of the layers`);
