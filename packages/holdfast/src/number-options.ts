import { HoldfastError } from "./errors.ts";

/** The longest that a timer can wait; a longer one would fire at once. */
export const TIMER_MS_MAX = 2 ** 31 - 1;
/** A hundred years: it can be subtracted from any time that a session has. */
export const AGE_MS_MAX = 100 * 366 * 24 * 3600 * 1000;
const COUNT_MAX = 2 ** 31 - 1;

/** What an option may be: from `least` to `most`, and `Infinity` too if that means something. */
export interface NumberRule {
  readonly least: number;
  readonly most: number;
  readonly whole?: true;
  readonly endless?: true;
}

export const count = (least: number, most = COUNT_MAX): NumberRule => ({ least, most, whole: true });
export const duration = (most = TIMER_MS_MAX, least = 0): NumberRule => ({ least, most });

/**
 * Checks the numbers among the options, before anything is done with them: a worker with a `concurrency` of NaN would
 * find work and never do it, and everything is older than NaN. Throws QUERY_INVALID { member }.
 */
export function checkNumbers<T extends object>(
  what: string,
  options: T,
  rules: { readonly [K in keyof T]?: NumberRule },
): void {
  for (const [member, rule] of Object.entries(rules) as [string, NumberRule][]) {
    const value: unknown = (options as Record<string, unknown>)[member];
    if (value === undefined || fits(value, rule)) continue;
    const { least, most, whole, endless } = rule;
    const wanted = `a ${whole ? "whole " : ""}number from ${least} to ${most}${endless ? ", or Infinity" : ""}`;
    const message = `The option "${member}" of ${what} must be ${wanted}. Nothing was touched. Correct the option.`;
    throw new HoldfastError("QUERY_INVALID", message, { member });
  }
}

function fits(value: unknown, { least, most, whole, endless }: NumberRule): boolean {
  if (value === Number.POSITIVE_INFINITY) return endless === true;
  return typeof value === "number" && value >= least && value <= most && (!whole || Number.isInteger(value));
}
