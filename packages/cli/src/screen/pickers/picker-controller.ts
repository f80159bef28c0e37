import type { Summary } from "holdfast";
import { defined } from "../../defined.ts";
import type { ChatState, Host } from "../../host/host.ts";
import { ago, plainLine } from "../../terminal/index.ts";
import type { Item } from "../../transcript/item.ts";
import { itemLines } from "../lines/item-lines.ts";
import { errorWords } from "../lines/labels.ts";
import { type Line, line } from "../lines/line.ts";
import { openPicker, type Picker, type PickerRow, passing, withRows } from "./picker.ts";
import { previewColumns } from "./picker-layout.ts";
import { sessionRows } from "./session-rows.ts";

const PAGE = 200;
const SESSIONS_MAX = 2_000;
const PREVIEW_ITEMS = 8;

/** The open list, if any, with the preview of the selected row. */
export class PickerController {
  readonly #host: Host;
  readonly #now: () => number;
  readonly #changed: () => void;
  readonly #peeked = new Map<string, readonly Item[] | string>();
  #picker: Picker | null = null;

  constructor(host: Host, now: () => number, changed: () => void) {
    this.#host = host;
    this.#now = now;
    this.#changed = changed;
  }

  get picker(): Picker | null {
    return this.#picker;
  }

  close(): void {
    this.#picker = null;
  }

  change(picker: Picker): void {
    this.#picker = picker;
    this.#peek();
  }

  /** Lists all sessions, a page at a time: the first can be chosen before the last is loaded. */
  async sessions(current: string | undefined): Promise<void> {
    this.#peeked.clear();
    this.#picker = openPicker("sessions", "Sessions", [], true);
    const found: Summary[] = [];
    let after: string | undefined;
    do {
      const page = await this.#host.list({ limit: PAGE, ...defined({ after }) });
      found.push(...page.sessions);
      after = found.length < SESSIONS_MAX ? page.next : undefined;
      if (this.#picker?.kind !== "sessions") return;
      this.#picker = withRows(this.#picker, sessionRows(found, this.#now(), current), after !== undefined);
      this.#peek();
      this.#changed();
    } while (after !== undefined);
  }

  /** Lists the prompts of this conversation, latest first. */
  rewind({ items }: ChatState): void {
    const rows = items
      .filter((item) => item.kind === "prompt" && item.aside === undefined)
      .reverse()
      .map(
        (item): PickerRow => ({
          id: item.id,
          title: item.kind === "prompt" ? plainLine(item.text) : "",
          detail: ago(item.at, this.#now()),
          mark: "",
          urgent: false,
        }),
      );
    this.#picker = openPicker("rewind", "Rewind to before which prompt?", rows);
  }

  /**
   * Lists earlier prompts, latest first, each once. A row's id is its distance from the end, which stays the same when
   * older ones are found. A list that is open keeps its filter.
   */
  history(prompts: readonly string[]): void {
    const latest = new Map(prompts.map((text, index) => [text, prompts.length - index]));
    const rows = [...latest]
      .sort(([, a], [, b]) => a - b)
      .map(([text, at]): PickerRow => ({ id: `${at}`, title: plainLine(text), detail: "", mark: "", urgent: false }));
    const isOpen = this.#picker?.kind === "history";
    this.#picker = isOpen ? withRows(this.#picker!, rows, false) : openPicker("history", "Earlier prompts", rows);
  }

  /** The end of the selected conversation. */
  preview(columns: number): readonly Line[] {
    const picker = this.#picker;
    if (picker?.kind !== "sessions") return [];
    const row = passing(picker)[picker.selected];
    const found = row === undefined ? undefined : this.#peeked.get(row.id);
    if (found === undefined) return [];
    if (typeof found === "string") return [line(found, { colour: "yellow" })];
    const rows = found.slice(-PREVIEW_ITEMS).flatMap((item) => itemLines(item, previewColumns(columns)));
    // Drop the blank line before the first item.
    return rows.slice(1);
  }

  #peek(): void {
    if (this.#picker?.kind !== "sessions") return;
    const row = passing(this.#picker)[this.#picker.selected];
    if (row === undefined || this.#peeked.has(row.id)) return;
    this.#peeked.set(row.id, []);
    this.#host
      .peek(row.id)
      .then((items) => this.#peeked.set(row.id, items))
      .catch((error) => this.#peeked.set(row.id, errorWords(error)))
      .finally(this.#changed);
  }
}
