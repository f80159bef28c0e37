import { join, relative, sep } from "node:path";
import { BaseSequencer, createVitest, type TestSpecification } from "vitest/node";
import { killGroup } from "./runner-process.ts";

/**
 * The process that runs the tests of one copy of the tree. Transformed modules stay in memory; each run gets new
 * workers.
 */

/** A test file, and which of its tests; all of them if no names are given. */
export interface TestSelection {
  readonly layer: string;
  /** From the root of the repository. */
  readonly file: string;
  readonly names?: readonly string[];
}

export interface RunnerOptions {
  readonly root: string;
  /** The folder for the files of its tests. */
  readonly scratch: string;
  readonly layers: readonly string[];
  /** Stop at the first test that fails. */
  readonly bail: boolean;
  /** A module that runs before each test file. */
  readonly setup?: string;
}

export type ToRunner =
  | { readonly kind: "list" }
  | { readonly kind: "run"; readonly changed: readonly string[]; readonly tests: readonly TestSelection[] };

export interface TestEnd {
  readonly layer: string;
  readonly file: string;
  readonly name: string;
  readonly passed: boolean;
  readonly ms: number;
  readonly message: string;
}

export type FromRunner =
  | { readonly kind: "ready" }
  | { readonly kind: "listed"; readonly tests: readonly TestSelection[] }
  | { readonly kind: "test"; readonly test: TestEnd }
  /** What failed besides tests: files that could not be loaded, errors that nobody caught. */
  | { readonly kind: "done"; readonly errors: readonly string[] };

/** The files run in the order in which they were asked for. */
class GivenOrder extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    return files;
  }
}

// First of all: a campaign that dies while vitest starts must be noticed too. It may have died even before this line,
// and before anybody else knew of this process.
const end = (): void => killGroup(process.pid);
process.on("disconnect", end);
if (!process.connected) end();

const { root, layers, bail, setup } = JSON.parse(process.argv[2]!) as RunnerOptions;
const say = (message: FromRunner): void => {
  // If nobody took it, the error of a campaign that has just died would end this process before its workers.
  process.send?.(message, undefined, undefined, () => undefined);
};
const fromRoot = (path: string): string => relative(root, path).split(sep).join("/");

const vitest = await createVitest({
  root,
  config: join(root, "vitest.config.ts"),
  project: [...layers],
  watch: false,
  // A new worker for each run and each layer, and not for each file: starting one takes longer than most files do.
  isolate: false,
  maxWorkers: 1,
  bail: bail ? 1 : 0,
  sequence: { sequencer: GivenOrder },
  includeTaskLocation: false,
  silent: true,
  reporters: [
    {
      onTestCaseResult(test) {
        const result = test.result();
        // After the first failure the tests that are left are neither.
        if (result.state !== "passed" && result.state !== "failed") return;
        const ms = test.diagnostic()?.duration ?? 0;
        const file = fromRoot(test.module.moduleId);
        const message = result.errors?.[0]?.message ?? "";
        const passed = result.state === "passed";
        say({ kind: "test", test: { layer: test.project.name, file, name: test.fullName, passed, ms, message } });
      },
    },
  ],
});
if (setup !== undefined) for (const project of vitest.projects) project.config.setupFiles.push(setup);
await vitest.standalone();
const projects = new Map(vitest.projects.map((project) => [project.name, project]));

process.on("message", (message: ToRunner) => {
  void (message.kind === "list" ? list() : run(message.changed, message.tests));
});
say({ kind: "ready" });

async function list(): Promise<void> {
  const specifications = await vitest.globTestSpecifications();
  const tests = specifications.map(({ project, moduleId }) => ({ layer: project.name, file: fromRoot(moduleId) }));
  say({ kind: "listed", tests });
}

async function run(changed: readonly string[], tests: readonly TestSelection[]): Promise<void> {
  for (const file of changed) vitest.invalidateFile(join(root, file));
  const specifications = tests.map(({ layer, file, names }) =>
    projects.get(layer)!.createSpecification(join(root, file), names ? { testNames: [...names] } : undefined),
  );
  try {
    const { testModules, unhandledErrors } = await vitest.runTestSpecifications(specifications);
    const broken = testModules.flatMap((module) =>
      module.errors().map(({ message }) => `${fromRoot(module.moduleId)} could not run: ${message}`),
    );
    say({ kind: "done", errors: [...broken, ...unhandledErrors.map(textOf)] });
  } catch (error) {
    say({ kind: "done", errors: [textOf(error)] });
  }
}

function textOf(error: unknown): string {
  const message = (error as { readonly message?: unknown } | null)?.message;
  return typeof message === "string" ? message : String(error);
}
