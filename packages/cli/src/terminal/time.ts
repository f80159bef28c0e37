const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** How long ago a time was, in words; the date if it is more than a month ago. `at` is an ISO 8601 time. */
export function ago(at: string, now: number): string {
  const ms = now - Date.parse(at);
  if (Number.isNaN(ms)) return "?";
  // Includes the future, which can appear after a clock was set back.
  if (ms < MINUTE) return "just now";
  if (ms < HOUR) return words(ms / MINUTE, "min");
  if (ms < DAY) return words(ms / HOUR, "h");
  if (ms < 31 * DAY) return words(ms / DAY, Math.floor(ms / DAY) === 1 ? "day" : "days");
  return at.slice(0, 10);
}

/** Milliseconds in `90 s`, `10 min`, `36 h`, `7d`, `2 weeks`; null if it is not a duration. */
export function durationMs(text: string): number | null {
  const match = /^(\d+(?:\.\d+)?)\s*(ms|s|sec|m|min|h|hours?|d|days?|w|weeks?)$/i.exec(text.trim());
  if (!match) return null;
  const unit = match[2]!.toLowerCase();
  const each =
    unit === "ms"
      ? 1
      : unit.startsWith("s")
        ? 1000
        : unit.startsWith("m")
          ? MINUTE
          : unit.startsWith("h")
            ? HOUR
            : unit.startsWith("d")
              ? DAY
              : 7 * DAY;
  return Number(match[1]) * each;
}

function words(value: number, unit: string): string {
  return `${Math.floor(value)} ${unit} ago`;
}
