import type { LiveText } from "./live-text.ts";
import { Observable } from "./observable.ts";

/** As fast as anybody reads. */
const FRAME_MS = 40;

/**
 * What the model is saying. Words may come faster than a busy machine draws them, so they are shown once a frame.
 * Otherwise everything else in the page would wait behind drawings of text that is out of date.
 */
export class PacedText {
  readonly shown = new Observable<LiveText | null>(null);
  #heard: LiveText | null = null;
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** Also what is not shown yet. */
  get heard(): LiveText | null {
    return this.#heard;
  }

  /** The end is shown at once: the answer stands in the transcript then. */
  update(change: (heard: LiveText | null) => LiveText | null): void {
    this.#heard = change(this.#heard);
    if (this.#heard === null) this.#show();
    else this.#timer ??= setTimeout(() => this.#show(), FRAME_MS);
  }

  stop(): void {
    clearTimeout(this.#timer);
  }

  #show(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.shown.set(this.#heard);
  }
}
