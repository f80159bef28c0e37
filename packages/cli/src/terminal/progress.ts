import { fit } from "./width.ts";

const BAR_COLUMNS = 30;
const REDRAW_MS = 100;

/**
 * Shows the progress of a long operation: on a terminal, a bar that is redrawn in place; otherwise, one line per step.
 */
export interface Progress {
  show(done: number, words: string): void;
  /** A part of the work starts or ends. */
  step(words: string): void;
  clear(): void;
}

export function progressOn(stream: NodeJS.WriteStream, total: number, now: () => number = Date.now): Progress {
  if (!stream.isTTY) {
    return { show: () => undefined, step: (words) => void stream.write(`${words}\n`), clear: () => undefined };
  }
  let drawnAt = Number.NEGATIVE_INFINITY;
  return {
    show(done, words) {
      if (now() - drawnAt < REDRAW_MS && done < total) return;
      drawnAt = now();
      stream.write(`\r\x1b[2K${fit(barLine(done, total, words), (stream.columns ?? 80) - 1)}`);
    },
    step(words) {
      drawnAt = Number.NEGATIVE_INFINITY;
      stream.write(`\r\x1b[2K${fit(words, (stream.columns ?? 80) - 1)}`);
    },
    clear: () => void stream.write("\r\x1b[2K"),
  };
}

export function barLine(done: number, total: number, words: string): string {
  // Nobody knows yet how much there is.
  if (total === Number.POSITIVE_INFINITY) return `${done} ${words}`;
  const share = total > 0 ? Math.min(done, total) / total : 1;
  const full = Math.floor(share * BAR_COLUMNS);
  return `${"█".repeat(full)}${"░".repeat(BAR_COLUMNS - full)} ${done}/${total} ${words}`;
}
