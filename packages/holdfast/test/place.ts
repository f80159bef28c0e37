import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/**
 * What these tests prove does not depend on the disk, and memory spares them thousands of syncs. TMPDIR chooses another
 * place.
 */
const BASE = process.env["TMPDIR"] === undefined && existsSync("/dev/shm") ? "/dev/shm" : tmpdir();

/** A folder of its own for one test, gone when the test is over. */
export function place(): { readonly path: string } & Disposable {
  const path = mkdtempSync(join(BASE, "holdfast-test-"));
  chmodSync(path, 0o755);
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) };
}

/** Every file below a folder, by its path relative to it, with its bytes: to show that nothing was touched. */
export function treeOf(root: string): Map<string, string> {
  const found = new Map<string, string>();
  for (const name of readdirSync(root, { recursive: true, encoding: "utf8" }).sort()) {
    const path = join(root, name);
    if (statSync(path).isFile()) found.set(name, readFileSync(path, "latin1"));
  }
  return found;
}

/** The mode bits of everything below a folder, and of itself. */
export function modesOf(root: string): Map<string, string> {
  const found = new Map([[".", modeOf(root)]]);
  for (const name of readdirSync(root, { recursive: true, encoding: "utf8" }))
    found.set(name, modeOf(join(root, name)));
  return found;
}

function modeOf(path: string): string {
  const stat = statSync(path);
  return `${stat.isDirectory() ? "d" : "f"}${(stat.mode & 0o777).toString(8)}`;
}
