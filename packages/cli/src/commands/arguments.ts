import { type Command, InvalidArgumentError } from "commander";
import { CommandError, EXIT } from "../exit.ts";
import { durationMs } from "../terminal/time.ts";

/** Parsers for command-line values. Commander adds the option's name to their errors. */

export function countOf(text: string): number {
  if (!/^[1-9]\d{0,8}$/.test(text)) throw new InvalidArgumentError("Give a whole number of at least 1.");
  return Number(text);
}

export function countOrNoneOf(text: string): number {
  return text === "0" ? 0 : countOf(text);
}

export function portOf(text: string): number {
  if (!/^\d{1,5}$/.test(text) || Number(text) > 65_535) throw new InvalidArgumentError("Give a port from 0 to 65535.");
  return Number(text);
}

/** A number of seconds, perhaps with a fraction. */
export function secondsOf(text: string): number {
  if (!/^\d{1,6}(?:\.\d{1,3})?$/.test(text))
    throw new InvalidArgumentError("Give a number of seconds, such as 3 or 0.5.");
  return Number(text);
}

/** In milliseconds. */
export function ageOf(text: string): number {
  const age = durationMs(text);
  if (age === null) throw new InvalidArgumentError("Give an age such as 2h, 7d or 0s.");
  return age;
}

const LIFETIME_MS_MAX = 100 * 365 * 24 * 3_600_000;

/** In milliseconds. */
export function lifetimeOf(text: string): number {
  const lifetime = durationMs(text);
  if (lifetime === null || lifetime <= 0 || lifetime > LIFETIME_MS_MAX)
    throw new InvalidArgumentError("Give a time such as 12h or 7d.");
  return lifetime;
}

/** A date or an age, as an ISO 8601 time. */
export function timeOf(text: string): string {
  const age = durationMs(text);
  const at = age === null ? Date.parse(text) : Date.now() - age;
  if (Number.isNaN(at)) throw new InvalidArgumentError("Give a date, or an age such as 2h or 7d.");
  return new Date(at).toISOString();
}

/**
 * For a command with its own store: refuses --store instead of ignoring it. HOLDFAST_STORE is ignored, because it is
 * meant for the other commands.
 */
export function assertNoStore(command: Command, why: string): void {
  if (command.optsWithGlobals()["store"] === undefined) return;
  throw new CommandError(
    EXIT.usage,
    "USAGE",
    `"holdfast ${command.name()}" does not take --store: ${why}. Nothing was touched.`,
  );
}
