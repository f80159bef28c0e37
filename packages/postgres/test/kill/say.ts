import { writeSync } from "node:fs";

/** Writes one line of JSON to stdout at once, so that a SIGKILL loses none of it. Waits while the pipe is full. */
export function say(what: object): void {
  const nap = new Int32Array(new SharedArrayBuffer(4));
  for (let left = Buffer.from(`${JSON.stringify(what)}\n`); left.length > 0; ) {
    try {
      left = left.subarray(writeSync(1, left));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EAGAIN") throw error;
      Atomics.wait(nap, 0, 0, 1);
    }
  }
}
