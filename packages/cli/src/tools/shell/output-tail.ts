import { closeSync, fstatSync, openSync, readSync } from "node:fs";
import { StringDecoder } from "node:string_decoder";

const LOOK_MS = 100;
/** The most to report at a time: of a flood of output, people see the end. */
const TOLD_BYTES_MAX = 64 * 1024;

export interface Tail {
  /** Reports the remaining output and stops. */
  end(): void;
}

/** Follows a command's log while it runs. Calls `each` with the size of the log after every look. */
export function tail(log: string, tell: (text: string) => void, each: (size: number) => void): Tail {
  const fd = openSync(log, "r");
  const bytes = new Uint8Array(TOLD_BYTES_MAX);
  let decoder = new StringDecoder("utf8");
  let at = 0;
  let isOver = false;
  const look = (): void => {
    const { size } = fstatSync(fd);
    let isSkipped = false;
    if (size - at > TOLD_BYTES_MAX) {
      at = size - TOLD_BYTES_MAX;
      decoder = new StringDecoder("utf8");
      isSkipped = true;
    }
    while (at < size) {
      const read = readSync(fd, bytes, 0, Math.min(TOLD_BYTES_MAX, size - at), at);
      if (read === 0) break;
      at += read;
      const text = decoder.write(bytes.subarray(0, read));
      if (text !== "") tell(isSkipped ? `…\n${text}` : text);
      isSkipped = false;
    }
    each(size);
  };
  let isWatched = true;
  const watch = (): void => {
    if (!isWatched) return;
    try {
      look();
    } catch {
      // The listener failed or the log is gone. The command keeps running, without being followed.
      isWatched = false;
    }
  };
  const timer = setInterval(watch, LOOK_MS);
  return {
    end: () => {
      if (isOver) return;
      isOver = true;
      clearInterval(timer);
      watch();
      closeSync(fd);
    },
  };
}
