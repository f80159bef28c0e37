import { closeSync, existsSync, fsyncSync, openSync, readFileSync, writeSync } from "node:fs";

/** One effect of a tool on the outside world. */
export interface Effect {
  readonly message: string;
  readonly call: string;
  readonly life: number;
}

/** On disk when it returns, whatever happens to the process: this reveals a tool that ran twice. */
export function haveEffect(path: string, effect: Effect): void {
  const fd = openSync(path, "a", 0o600);
  try {
    writeSync(fd, `${JSON.stringify(effect)}\n`);
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

export function effectsIn(path: string): Effect[] {
  if (!existsSync(path)) return [];
  const lines = readFileSync(path, "utf8").split("\n").slice(0, -1);
  return lines.map((line) => JSON.parse(line) as Effect);
}
