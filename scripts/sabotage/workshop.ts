import { execFileSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { TreeCopy } from "../tree-copy.ts";
import type { Sabotage } from "./list.ts";

/** A copy of the repository in which things may be broken. */
export class Workshop implements Disposable {
  readonly #copy: TreeCopy;
  readonly #root: string;

  constructor(source: string) {
    this.#copy = new TreeCopy(source, join(tmpdir(), `holdfast-sabotage-${randomUUID()}`));
    this.#root = this.#copy.root;
  }

  /** Breaks one thing, runs the tests, mends it. Returns the names of those that failed. */
  tryOut(sabotage: Sabotage): string[] {
    const path = join(this.#root, pathOf(sabotage));
    const whole = readFileSync(path, "utf8");
    writeFileSync(path, applied(sabotage, whole));
    try {
      return this.failures(sabotage.look);
    } finally {
      writeFileSync(path, whole);
    }
  }

  [Symbol.dispose](): void {
    this.#copy[Symbol.dispose]();
  }

  /** The names of the tests that fail. */
  failures(look: readonly string[], timeoutMs = 300_000): string[] {
    const report = join(this.#root, "report.json");
    rmSync(report, { force: true });
    const vitest = join(this.#root, "node_modules/vitest/vitest.mjs");
    const parameters = ["run", ...look, "--bail=3", "--reporter=json", `--outputFile=${report}`];
    try {
      execFileSync(process.execPath, [vitest, ...parameters], { cwd: this.#root, stdio: "ignore", timeout: timeoutMs });
      return [];
    } catch {
      return failedTests(report);
    }
  }
}

/** From the root of the repository. */
export function pathOf({ room = "packages/holdfast/src", file }: Sabotage): string {
  return `${room}/${file}`;
}

/** The source with the sabotage in it. Throws if it does not fit any more: then the list has to follow the code. */
export function applied(sabotage: Sabotage, text: string): string {
  const count = text.split(sabotage.find).length - 1;
  if (count !== 1)
    throw new Error(`"${sabotage.name}" does not fit ${sabotage.file}: its place stands there ${count} times`);
  return text.replace(sabotage.find, () => sabotage.replace);
}

interface Report {
  readonly testResults: readonly {
    readonly name: string;
    readonly status: string;
    readonly assertionResults: readonly { readonly status: string; readonly fullName: string }[];
  }[];
}

function failedTests(path: string): string[] {
  let report: Report;
  try {
    report = JSON.parse(readFileSync(path, "utf8")) as Report;
  } catch {
    // The runner itself was stopped: a test that hangs has noticed as well.
    return ["(the run did not end)"];
  }
  const failed: string[] = [];
  for (const { name, status, assertionResults } of report.testResults) {
    const file = name.replace(/^.*\/test\//, "");
    const tests = assertionResults.filter((result) => result.status === "failed");
    for (const { fullName } of tests) failed.push(`${file}: ${fullName}`);
    if (tests.length === 0 && status === "failed") failed.push(`${file}: could not run`);
  }
  return failed;
}
