import { APPEARING, type Panel, WRITING } from "./panel.ts";

/** A key that comes sooner than this after a question appeared was typed before the person saw it. */
const APPEARING_MS = 250;

/** Which choice of the panel on the screen Enter would take. */
export class PanelSelection {
  readonly #now: () => number;
  readonly #redraw: () => void;
  /** Kept as long as the panel is about the same thing. */
  #selected = { about: "", at: 0 };
  /** The question on the screen, since when, and whether the line was started before it. */
  #question = { about: "", since: 0, isTypedAhead: false };

  constructor(now: () => number, redraw: () => void) {
    this.#now = now;
    this.#redraw = redraw;
  }

  /** The choice that Enter would take, given this text in the line; WRITING or APPEARING if none. */
  indexIn({ about, choices, initial = 0, isQuestion }: Panel, text: string): number {
    if (isQuestion) {
      if (this.#question.about !== about || this.#now() - this.#question.since < APPEARING_MS) return APPEARING;
      if (text !== "" && this.#question.isTypedAhead) return WRITING;
    }
    const word = text.trim().toLowerCase();
    if (text !== "") return choices.findIndex((choice) => choice.key === word || choice.word === word);
    return this.#selected.about === about ? Math.min(this.#selected.at, choices.length - 1) : initial;
  }

  move({ about, choices }: Panel, to: number): void {
    this.#selected = { about, at: (to + choices.length) % choices.length };
  }

  /**
   * Call it when the panel is drawn. Remembers when a question appeared. Text that is in the line by then, or typed in
   * the first moment, was not meant for it.
   */
  see({ about, isQuestion }: Panel, text: string): void {
    if (!isQuestion) return;
    const hasText = text !== "";
    if (this.#question.about !== about) {
      this.#question = { about, since: this.#now(), isTypedAhead: hasText };
      setTimeout(this.#redraw, APPEARING_MS).unref();
    } else if (!hasText) this.#question.isTypedAhead = false;
    else if (this.#now() - this.#question.since < APPEARING_MS) this.#question.isTypedAhead = true;
  }
}
