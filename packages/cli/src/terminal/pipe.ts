let endsWithPipe = true;

/** When the reader of our output goes away (`holdfast ls | head -1`), there is nobody left to talk to: end, quietly. Unless `outlivePipe` was called. */
export function endWithPipe(): void {
  for (const stream of [process.stdout, process.stderr]) {
    stream.on("error", (error: NodeJS.ErrnoException) => {
      // EIO: the terminal is gone, and its SIGHUP is on the way to whoever handles it.
      if (error.code !== "EPIPE" && error.code !== "EIO") throw error;
      if (endsWithPipe) process.exit();
    });
  }
}

/** For a command that has more to do than to talk: it goes on although nobody listens, and what it writes is dropped. */
export function outlivePipe(): void {
  endsWithPipe = false;
}
