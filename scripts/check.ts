import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { checkFile, checkLockFile, checkManifest, type Violation } from "./rules.ts";

const files = execFileSync("git", ["ls-files", "--cached", "--others", "--exclude-standard"], {
  encoding: "utf8",
}).split("\n");
const found: Violation[] = [];
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
  found.push(...check(path, readFileSync(path, "utf8")));
}
for (const { path, line, rule } of found) console.error(`${path}:${line}: ${rule}`);
if (found.length > 0) process.exit(1);
console.log(`${checked} files keep the rules of the layers`);
