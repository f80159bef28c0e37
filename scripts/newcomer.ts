import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { Hour } from "./newcomer/hour.ts";
import { prepare } from "./newcomer/place.ts";
import { Shell } from "./newcomer/shell.ts";
import { followCommandPage, followReadme } from "./newcomer/steps.ts";

const HELP = `npm run newcomer -- [options]

A newcomer's hour: types every command of README.md and docs/CLI.md in a real terminal, with an empty home, and compares what appears with
what the documents promise. Ends with 1 at the first difference, or if a document has a command that nobody typed.

  --clone     in a fresh clone of the last commit, from "npm ci" on (some minutes; needs a package registry).
              Default: in this checkout, which must be built
  --help
`;

const { values } = parseArgs({ options: { clone: { type: "boolean" }, help: { type: "boolean" } } });
if (values.help) process.stdout.write(HELP);
else process.exitCode = await run(values.clone === true);

async function run(inClone: boolean): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-hour-"));
  try {
    const { home, clone, work, env } = prepare(folder, inClone);
    await using shell = await Shell.open({ cwd: clone, env, patienceMs: inClone ? 900_000 : 120_000 });
    const hour = new Hour(shell, (line) => void process.stdout.write(`✓ ${line}\n`));
    await followReadme(hour, inClone);
    await followCommandPage(hour, { home, work });
    hour.assertComplete();
    process.stdout.write("Every command of README.md and docs/CLI.md does what it says.\n");
    return 0;
  } catch (error) {
    process.stderr.write(`✗ ${error instanceof Error ? error.message : String(error)}\n`);
    return 1;
  } finally {
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  }
}
