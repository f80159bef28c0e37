import type { ChatState } from "../../host/host.ts";
import { ansiOf, type Line } from "../lines/line.ts";
import { headLines, type Level, noticeLines, ruleLine } from "../lines/notices.ts";
import { answerRowsMax, type LiveArea, type LiveContent, layOutLiveArea, type Size, textColumns } from "./live-area.ts";
import { pendingItems, Scrollback } from "./scrollback.ts";

/** Deltas arrive by the thousand: the screen follows at this pace. */
const FRAME_MS = 33;
const SPIN_MS = 120;

/** What the terminal shows: what is written once, and what is redrawn. Immutable. */
export interface Picture {
  /** Pieces of the scrollback, oldest first; only ever appended to. */
  readonly written: readonly string[];
  readonly live: string;
  readonly cursor: { readonly x: number; readonly y: number } | null;
}

/** Draws pictures of `content` at its own pace. */
export class Renderer {
  readonly #content: (renderer: Renderer) => { readonly area: LiveArea; readonly active: boolean };
  readonly #colour: boolean;
  readonly #listeners = new Set<() => void>();
  #picture: Picture = { written: [], live: "", cursor: null };
  #size: Size;
  #scrollback = new Scrollback();
  /** Rows waiting for the next picture. */
  #rows: Line[] = [];
  #failure: ChatState["failure"] = null;
  #ended = false;
  #frame = 0;
  #timer: NodeJS.Timeout | null = null;
  #spinning: NodeJS.Timeout | null = null;
  /** Called before each picture: calls `resize` if the terminal has another size by now. */
  lookAtSize: () => void = () => undefined;

  constructor(size: Size, colour: boolean, content: (renderer: Renderer) => { area: LiveArea; active: boolean }) {
    this.#size = size;
    this.#colour = colour;
    this.#content = content;
  }

  get picture(): Picture {
    return this.#picture;
  }

  get size(): Size {
    return this.#size;
  }

  /** A counter that advances while something runs. */
  get frame(): number {
    return this.#frame;
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  /** Adds rows to the scrollback. */
  write(rows: readonly Line[]): void {
    this.#rows.push(...rows);
    this.drawSoon();
  }

  notice(level: Level, text: string): void {
    this.write(noticeLines(level, text, textColumns(this.#size.columns)));
  }

  /** Shows another conversation. */
  open(state: ChatState, resumed: boolean, behindAnother: boolean): void {
    const { columns } = this.#size;
    this.#scrollback = new Scrollback();
    this.#failure = null;
    this.write([
      ...(behindAnother ? [ruleLine(columns)] : []),
      ...headLines(state, columns, resumed),
      ...this.#scrollback.open(state, textColumns(columns)),
    ]);
  }

  resize(size: Size): void {
    if (size.columns === this.#size.columns && size.rows === this.#size.rows) return;
    this.#size = size;
    this.draw();
  }

  /** Lays out the live part of a conversation, and moves what is finished into the scrollback. */
  conversation(shown: Omit<LiveContent, "answer" | "pending">): LiveArea {
    const { state } = shown;
    const { finished, live } = this.#scrollback.step(state, textColumns(this.#size.columns), answerRowsMax(this.#size));
    this.#rows.push(...finished);
    const { failure } = state;
    // Compared by identity: the same failure may occur twice in a row, and is then shown twice.
    if (failure !== null && failure !== this.#failure) {
      this.#rows.push(...noticeLines("error", failure.message, textColumns(this.#size.columns)));
    }
    this.#failure = failure;
    return layOutLiveArea({ ...shown, answer: live, pending: pendingItems(state) }, this.#size);
  }

  drawSoon(): void {
    if (!this.#ended) this.#timer ??= setTimeout(() => this.draw(), FRAME_MS);
  }

  draw(): void {
    if (this.#ended) return;
    this.lookAtSize();
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    const { area, active } = this.#content(this);
    this.#picture = { written: this.#written(), live: this.#ansi(area.lines), cursor: area.cursor };
    this.#spin(active);
    for (const listener of this.#listeners) listener();
  }

  /** Removes the live part. What was written stays in the terminal, including the part of an answer streamed so far. */
  end(state: ChatState | null): void {
    this.draw();
    this.#ended = true;
    this.#spin(false);
    if (state !== null) this.#rows.push(...this.#scrollback.breakOff(state, textColumns(this.#size.columns)));
    this.#picture = { written: this.#written(), live: "", cursor: null };
    for (const listener of this.#listeners) listener();
  }

  /** Appends the waiting rows. */
  #written(): readonly string[] {
    const { written } = this.#picture;
    const rows = this.#rows.splice(0);
    return rows.length === 0 ? written : [...written, this.#ansi(rows)];
  }

  #ansi(lines: readonly Line[]): string {
    return lines.map((row) => ansiOf(row, this.#colour)).join("\n");
  }

  /** Runs only while something is active: an idle screen costs nothing. */
  #spin(active: boolean): void {
    if (active === (this.#spinning !== null)) return;
    if (this.#spinning !== null) clearInterval(this.#spinning);
    this.#spinning = !active
      ? null
      : setInterval(() => {
          this.#frame++;
          this.draw();
        }, SPIN_MS);
  }
}
