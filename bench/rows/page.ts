import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import type { Bench } from "../bench.ts";
import type { Results } from "../figure.ts";

const BYTES_MAX = 250_000;
const JUMP_MS_MAX = 300;
const ELEMENTS_MAX = 3000;
const PROGRAM = join(import.meta.dirname, "../../packages/web/test/browser/measure-page.ts");

/** As `measure-page.ts` has it, which needs the types of a browser. */
interface ViewFound {
  readonly firstMs: number;
  readonly dropped: number;
  readonly elements: number;
}

/** The web page in Chromium, with more sessions and more messages than anybody has. */
export async function pageRow(bench: Bench, results: Results): Promise<void> {
  const sizes = { sessions: bench.size(10_000, 500), messages: bench.size(100_000, 10_000), rounds: bench.size(3, 1) };
  bench.say(`page: ${sizes.sessions} sessions, ${sizes.messages} messages`);
  const program = ["--conditions=holdfast-source", PROGRAM, JSON.stringify(sizes)];
  const { stdout } = await promisify(execFile)(process.execPath, program);
  const found = JSON.parse(stdout.trim().split("\n").at(-1)!) as {
    readonly bytes: number;
    readonly list: readonly ViewFound[];
    readonly session: readonly ViewFound[];
    readonly jumpsMs: readonly number[];
  };
  results.figures.push(
    {
      ...{ row: "page", what: "the web page, compressed", bound: { under: BYTES_MAX / 1e6 }, unit: "MB" },
      rounds: [found.bytes / 1e6],
    },
    {
      ...{ row: "page", what: `the web page: a jump to any of ${sizes.messages} messages`, unit: "ms" },
      bound: { under: JUMP_MS_MAX },
      rounds: found.jumpsMs,
    },
  );
  report(results, `${sizes.sessions} sessions`, found.list);
  report(results, `${sizes.messages} messages`, found.session);
}

function report(results: Results, what: string, views: readonly ViewFound[]): void {
  const elements = Math.max(...views.map((one) => one.elements));
  if (elements >= ELEMENTS_MAX)
    throw new Error(`${what}: ${elements} elements in the page, at most ${ELEMENTS_MAX - 1}`);
  results.peers.push(
    {
      ...{ what: `the web page, ${what}: first content`, unit: "ms", rounds: views.map((one) => one.firstMs) },
      note: `at most ${elements} elements in the page`,
    },
    {
      ...{ what: `the web page, ${what}: frames dropped while scrolling`, unit: "/s" },
      rounds: views.map((one) => one.dropped),
      note: "of 60 per second",
    },
  );
}
