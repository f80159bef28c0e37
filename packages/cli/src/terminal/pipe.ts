import { EXIT } from "../exit.ts";

/** What to do with output that cannot be written, for a command that goes on all the same. */
let lost: ((error: Error) => void) | null = null;

/**
 * When the reader of our output goes away (`holdfast ls | head -1`), there is nobody left to talk to: end, quietly.
 * When it cannot be written (a full disk), end too, but say so: half a list is not to look like one. Unless
 * `outlivePipe` was called.
 */
export function endWithPipe(): void {
  for (const stream of [process.stdout, process.stderr]) {
    stream.on("error", (error: NodeJS.ErrnoException) => {
      // EIO: the terminal is gone, and its SIGHUP is on the way to its handler.
      const isGone = error.code === "EPIPE" || error.code === "EIO";
      if (lost) {
        if (!isGone) lost(error);
        return;
      }
      if (isGone) process.exit();
      if (stream === process.stdout)
        process.stderr.write(
          `holdfast: The output could not be written: ${error.message}. It is incomplete; everything recorded is safe. [OUTPUT_LOST]\n`,
        );
      process.exit(EXIT.failed);
    });
  }
}

/**
 * For a command that has more to do than to talk: it goes on although nobody listens, and what it writes is dropped.
 * `onLost`: somebody listens, but the output could not be written (a full disk).
 */
export function outlivePipe(onLost: (error: Error) => void = () => {}): void {
  lost = onLost;
}
