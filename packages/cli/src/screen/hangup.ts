/** The kernel's signal follows the end of the terminal at once; a terminal that went without one is given this long. */
const SIGNAL_MS_MAX = 1_000;

/**
 * A terminal that is closed: standard input ends, writing fails with EIO, and SIGHUP comes, in any order. Ink alone
 * would leave with 0 when its input has ended, before the signal is heard; so the process is kept alive until then, and
 * the
 * signal is raised here if nobody else sends it. What is to be recorded, the guard of the store records when it hears
 * the signal. Returns the way to stop watching.
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
