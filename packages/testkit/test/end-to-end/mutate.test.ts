import { spawn } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { describe, expect, test, vi } from "vitest";

const ROOT = resolve(import.meta.dirname, "../../../..");
const SOURCE = "packages/holdfast/src/journal/queue.ts";

const FILES: Record<string, string> = {
  "package.json": '{ "type": "module" }',
  "vitest.config.ts": `export default {
    test: { projects: [{ test: { name: "unit", include: ["packages/*/test/unit/**/*.test.ts"] } }] },
  };`,
  "packages/holdfast/package.json": '{ "name": "holdfast", "type": "module" }',
  [SOURCE]: `let last: number | null = null;

export function drain(queue: number[]): number {
  let sum = 0;
  while (queue.length > 0) sum += Number(queue.pop());
  return sum;
}

/** No test tells whether the limit itself is large. */
export function isLarge(number: number): boolean {
  remember(number);
  return number > 100;
}

export function isNegative(number: number): boolean {
  return number < 0;
}

function remember(number: number): void {
  last = number;
}

export function lastLarge(): number | null {
  return last;
}
`,
  "packages/holdfast/test/unit/queue.test.ts": `import { expect, test } from "vitest";
import { drain, isLarge } from "../../src/journal/queue.ts";

test("adds up", () => expect(drain([1, 2, 3])).toBe(6));
test("large", () => expect([isLarge(5), isLarge(500)]).toEqual([false, true]));
`,
};

class Fixture implements Disposable {
  readonly place = mkdtempSync(join(tmpdir(), "holdfast-mutate-test-"));
  readonly root = join(this.place, "repository");
  readonly scratch = join(this.place, "scratch");

  constructor() {
    mkdirSync(this.scratch);
    for (const [name, text] of Object.entries(FILES)) {
      mkdirSync(dirname(join(this.root, name)), { recursive: true });
      writeFileSync(join(this.root, name), text);
    }
    const modules = join(this.root, "node_modules");
    mkdirSync(modules);
    for (const name of readdirSync(join(ROOT, "node_modules")))
      if (!name.startsWith(".")) symlinkSync(join(ROOT, "node_modules", name), join(modules, name), "junction");
  }

  /** Runs the command, with this signal at the moment that `isMoment` recognises by what was printed so far. */
  run(parameters: readonly string[], signal?: NodeJS.Signals, isMoment: (output: string) => boolean = () => false) {
    const command = join(ROOT, "scripts/mutate.ts");
    const child = spawn(process.execPath, [command, "--root", this.root, "--jobs", "1", ...parameters], {
      env: { ...process.env, TMPDIR: this.scratch },
      stdio: ["ignore", "pipe", "pipe"],
    });
    let output = "";
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding("utf8").on("data", (text: string) => {
        output += text;
      });
    }
    const looking = setInterval(() => {
      if (!isMoment(output)) return;
      clearInterval(looking);
      child.kill(signal);
    }, 10);
    return new Promise<{ code: number | null; output: string }>((done) => {
      child.on("close", (code) => {
        clearInterval(looking);
        done({ code, output });
      });
    });
  }

  /** The processes that still work in this place, where the system tells; of one program, or all. */
  processes(program = ""): string[] {
    if (!existsSync("/proc/self/cmdline")) return [];
    return readdirSync("/proc").filter((pid) => {
      try {
        if (!/^\d+$/.test(pid)) return false;
        const command = readFileSync(`/proc/${pid}/cmdline`, "utf8");
        return command.includes(this.scratch) && command.includes(program);
      } catch {
        // It has ended since.
        return false;
      }
    });
  }

  [Symbol.dispose](): void {
    rmSync(this.place, { recursive: true, force: true });
  }
}

describe("npm run mutate", () => {
  test("kills what a test notices, shows what none does, and ends what hangs", async () => {
    using fixture = new Fixture();
    const json = join(fixture.place, "verdicts.json");
    const { code, output } = await fixture.run([
      "--file",
      SOURCE,
      "--count",
      "all",
      "--patience",
      "10",
      "--json",
      json,
    ]);
    const { judged } = JSON.parse(readFileSync(json, "utf8")) as {
      judged: { mutant: { id: string; after: string }; verdict: string; by: string; tests: number }[];
    };
    const verdictOf = (after: string) => judged.find(({ mutant }) => mutant.after === after);
    expect(verdictOf("while (queue.length <= 0) sum += Number(queue.pop());")).toMatchObject({
      verdict: "killed",
      by: "unit/queue.test.ts: adds up",
    });
    expect(verdictOf("while (queue.length >= 0) sum += Number(queue.pop());")).toMatchObject({ verdict: "timed out" });
    expect(verdictOf("return number <= 100;")).toMatchObject({ verdict: "killed", by: "unit/queue.test.ts: large" });
    expect(verdictOf("return number >= 100;")).toMatchObject({ verdict: "survived", tests: 1 });
    expect(verdictOf(";")).toMatchObject({ verdict: "survived", tests: 1 });
    expect(verdictOf("return number <= 0;")).toMatchObject({ verdict: "survived", tests: 0 });

    const { id } = verdictOf("return number >= 100;")!.mutant;
    expect(output).toContain(`npm run mutate -- --mutant ${id}`);
    expect(output).toMatch(/seed \d+; to repeat: npm run mutate -- --file \S+ --count all --seed \d+/);
    expect(output).toMatch(/^journal\/queue.ts +\d+ /m);
    expect(code).toBe(1);

    const again = await fixture.run(["--mutant", id, "--limit", "0"]);
    expect(again.output).toMatch(/^ +- return number > 100;\n +\+ return number >= 100;\n/m);
    expect(again.output).toContain("1/1  survived");
    expect(again.code).toBe(0);

    expect(readFileSync(join(fixture.root, SOURCE), "utf8")).toBe(FILES[SOURCE]);
    expect(readdirSync(fixture.scratch)).toEqual([]);
    expect(fixture.processes()).toEqual([]);
  });

  const everything = ["--file", SOURCE, "--count", "all", "--patience", "4"];
  const expectNothingLeft = (fixture: Fixture): Promise<void> =>
    vi.waitFor(() => {
      expect(readdirSync(fixture.scratch)).toEqual([]);
      expect(fixture.processes()).toEqual([]);
    }, 60_000);

  test.each(["SIGINT", "SIGKILL"] as const)("leaves nothing behind after %s", async (signal) => {
    using fixture = new Fixture();
    const { code, output } = await fixture.run(everything, signal, (text) => /^2\/\d+ /m.test(text));
    if (signal === "SIGINT") {
      expect(output).toMatch(/Stopping[\s\S]*\njournal\/queue.ts +\d+ /);
      expect(code).toBe(130);
    }
    await expectNothingLeft(fixture);
  });

  test("leaves nothing behind after SIGKILL before its first test runner starts", async () => {
    using fixture = new Fixture();
    await fixture.run(everything, "SIGKILL", () => readdirSync(fixture.scratch).length > 0);
    await expectNothingLeft(fixture);
  });

  test("leaves nothing behind after SIGKILL while its test runner starts", async (context) => {
    if (!existsSync("/proc/self/cmdline")) context.skip("not run: this system does not list processes in /proc");
    using fixture = new Fixture();
    await fixture.run(everything, "SIGKILL", () => fixture.processes("mutate/runner.ts").length > 0);
    await expectNothingLeft(fixture);
  });

  test("wrong parameters are told, and end with 2", async () => {
    using fixture = new Fixture();
    for (const [parameters, told] of [
      [["--rooms", "nowhere"], /no room "nowhere"/],
      [["--file", "README.md"], /"README.md" is not a source file/],
      [["--mutant", "0000000000"], /no mutant 0000000000/],
      [["--seed", "x"], /--seed x: this is not a number/],
      [["--unknown"], /--unknown/],
    ] as const) {
      const { code, output } = await fixture.run(parameters);
      expect(output).toMatch(told);
      expect(code).toBe(2);
    }
    const help = await fixture.run(["--help"]);
    expect(help.output).toContain("Examples:");
    expect(help.code).toBe(0);
  });
});
