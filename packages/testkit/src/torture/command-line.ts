import { randomInt } from "node:crypto";

/** Something the caller got wrong: said in one line, exit code 2. */
export class UsageError extends Error {}

/** A whole number of at least `least`, from an option of the command line. */
export function wholeNumber(name: string, given: string | undefined, fallback: number, least = 1): number {
  if (given === undefined) return fallback;
  if (!/^\d{1,10}$/.test(given) || Number(given) < least)
    throw new UsageError(`--${name} takes a whole number of at least ${least}, not "${given}"`);
  return Number(given);
}

export function oneOf<T extends string>(
  name: string,
  given: string | undefined,
  choices: readonly T[],
  fallback: T,
): T {
  if (given === undefined) return fallback;
  const choice = choices.find((known) => known === given);
  if (choice === undefined) throw new UsageError(`--${name} takes ${choices.join(", ")}, not "${given}"`);
  return choice;
}

export function newSeed(): number {
  return randomInt(1, 1_000_000);
}

/** Runs a command: its exit code is what `main` returns, 2 for wrong usage. */
export async function runCommand(name: string, main: () => Promise<number>): Promise<void> {
  try {
    process.exitCode = await main();
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : "";
    if (!(error instanceof UsageError) && !code.startsWith("ERR_PARSE_ARGS")) throw error;
    process.stderr.write(`${name}: ${(error as Error).message}\nTry --help.\n`);
    process.exitCode = 2;
  }
}
