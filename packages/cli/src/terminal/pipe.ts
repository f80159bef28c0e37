import { EXIT } from "../exit.ts";

/** Handles output that cannot be written, for a command that continues regardless. */
let lost: ((error: Error) => void) | null = null;

/**
 * Exits quietly when the reader of our output goes away (`holdfast ls | head -1`). If output cannot be written (a full
 * disk), exits with an error message: half a list must not look complete. `outlivePipe` turns this off.
 */
export function endWithPipe(): void {
  for (const stream of [process.stdout, process.stderr]) {
    stream.on("error", (error: NodeJS.ErrnoException) => {
      // EIO: the terminal is gone, and SIGHUP will follow.
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
 * For a command that does more than print: it continues even if nobody reads its output, which is dropped. `onLost` is
 * called if the output has a reader but cannot be written (a full disk).
 */
export function outlivePipe(onLost: (error: Error) => void = () => {}): void {
  lost = onLost;
}
