import { closeSync, existsSync, fsyncSync, openSync, readFileSync, writeSync } from "node:fs";

/** What a tool did to the world, once. */
export interface Effect {
  readonly message: string;
  readonly call: string;
  readonly life: number;
}

/** On the disk when it returns, whatever becomes of the process: that is how a tool that ran twice is seen. */
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
