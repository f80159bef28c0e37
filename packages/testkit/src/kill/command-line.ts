import { randomInt } from "node:crypto";

/** A mistake by the caller: reported in one line, with exit code 2. */
export class UsageError extends Error {}

/** Parses a command-line option as a whole number of at least `least`. */
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

/** Runs a command. Its exit code is what `main` returns, or 2 for wrong usage. */
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
