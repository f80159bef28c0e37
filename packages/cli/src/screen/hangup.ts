/** How long to wait for the kernel's SIGHUP after the terminal is gone. Normally it follows at once. */
const SIGNAL_MS_MAX = 1_000;

/**
 * Handles a terminal that is closed: standard input ends, writing fails with EIO and SIGHUP arrives, in any order. Ink
 * alone would exit with 0 at the end of its input, before the signal is handled. So this keeps the process alive until
 * then, and raises the signal if nobody sends it; the store's guard records what is needed when it gets the signal.
 * Returns a function that stops watching.
 */
export function watchHangup(): () => void {
  const alive = setInterval(() => undefined, 1 << 30);
  let gone: NodeJS.Timeout | null = null;
  const lost = (): void => {
    gone ??= setTimeout(() => process.kill(process.pid, "SIGHUP"), SIGNAL_MS_MAX);
  };
  const failed = (error: NodeJS.ErrnoException): void => {
    if (error.code === "EIO" || error.code === "EPIPE" || error.code === "EBADF") lost();
  };
  process.stdin.on("end", lost);
  process.stdin.on("close", lost);
  process.stdin.on("error", failed);
  process.stdout.on("error", failed);
  return () => {
    clearInterval(alive);
    if (gone !== null) clearTimeout(gone);
    process.stdin.off("end", lost);
    process.stdin.off("close", lost);
    process.stdin.off("error", failed);
    process.stdout.off("error", failed);
  };
}
