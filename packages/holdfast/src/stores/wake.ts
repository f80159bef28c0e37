import type { Disk } from "../disk/disk.ts";
import { tolerate } from "../disk/failure.ts";

/**
 * Waits until woken, until a timeout if there is one, or until the signal aborts. A wake-up while nobody waits is not
 * lost.
 */
export class Wake {
  readonly #signal: AbortSignal | undefined;
  #woken = false;
  #resolve: (() => void) | null = null;

  constructor(signal?: AbortSignal) {
    this.#signal = signal;
    signal?.addEventListener("abort", this.up);
  }

  readonly up = (): void => {
    this.#woken = true;
    this.#resolve?.();
  };

  async wait(ms?: number): Promise<void> {
    if (!this.#woken) {
      const timer = ms === undefined ? undefined : setTimeout(this.up, ms);
      await new Promise<void>((resolve) => {
        this.#resolve = resolve;
      });
      this.#resolve = null;
      clearTimeout(timer);
    }
    this.#woken = false;
  }

  end(): void {
    this.#signal?.removeEventListener("abort", this.up);
  }
}

/** Watches can run out, and some file systems have none: waiters also poll. */
export function watchOrPoll(disk: Disk, folder: string, onChange: () => void): () => void {
  return tolerate(
    () => disk.watch(folder, onChange),
    () => {},
  );
}
