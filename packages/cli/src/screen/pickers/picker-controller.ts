import { setImmediate as breathe } from "node:timers/promises";
import { defined } from "../../defined.ts";
import type { ChatState, Host } from "../../host/host.ts";
import { ago, plainLine } from "../../terminal/index.ts";
import type { Item } from "../../transcript/item.ts";
import { itemLines } from "../lines/item-lines.ts";
import { errorWords } from "../lines/labels.ts";
import { type Line, line } from "../lines/line.ts";
import { openPicker, type Picker, type PickerRow, withRows } from "./picker.ts";
import { previewColumns } from "./picker-layout.ts";
import { sessionRows } from "./session-rows.ts";

/** The first page is there at once; larger ones take less time in all. */
const FIRST_PAGE = 200;
const PAGE = 1_000;
const PREVIEW_ITEMS = 8;
/** The texts are searched when the person pauses. */
const PAUSE_MS = 150;
/** Hits arrive by the thousand: the list follows at this pace. */
const HITS_MS = 100;

/** The open list, if any, with the preview of the selected row. */
export class PickerController {
  readonly #host: Host;
  readonly #now: () => number;
  readonly #changed: () => void;
  readonly #failed: (error: unknown) => void;
  readonly #peeked = new Map<string, readonly Item[] | string>();
  #picker: Picker | null = null;
  #pause: NodeJS.Timeout | null = null;
  /** The filter that is being searched for; null if none. */
  #searched: string | null = null;

  constructor(host: Host, now: () => number, changed: () => void, failed: (error: unknown) => void) {
    this.#failed = failed;
    this.#host = host;
    this.#now = now;
    this.#changed = changed;
  }

  get picker(): Picker | null {
    return this.#picker;
  }

  close(): void {
    this.#picker = null;
    this.#stopSearch();
  }

  change(picker: Picker): void {
    const isNew = picker.filter !== this.#picker?.filter;
    this.#picker = picker;
    if (isNew && picker.kind === "sessions") this.#searchSoon(picker.filter);
    this.#peek();
  }

  /** Lists all sessions, a page at a time: the first can be chosen before the last is loaded. */
  async sessions(current: string | undefined): Promise<void> {
    this.#peeked.clear();
    this.#stopSearch();
    this.#picker = openPicker("sessions", "Sessions", [], true);
    const urgent: PickerRow[] = [];
    const others: PickerRow[] = [];
    let after: string | undefined;
    do {
      const page = await this.#host.list({ limit: after === undefined ? FIRST_PAGE : PAGE, ...defined({ after }) });
      for (const row of sessionRows(page.sessions, this.#now(), current)) (row.urgent ? urgent : others).push(row);
      after = page.next;
      if (this.#picker?.kind !== "sessions") return;
      this.#picker = withRows(this.#picker, { rows: [...urgent, ...others], loading: after !== undefined });
      this.#peek();
      this.#changed();
      // Let keys through between two pages.
      await breathe();
    } while (after !== undefined);
  }

  #stopSearch(): void {
    if (this.#pause !== null) clearTimeout(this.#pause);
    this.#pause = null;
    this.#searched = null;
  }

  /** Searches the texts of all sessions, a moment after the last key. */
  #searchSoon(filter: string): void {
    this.#stopSearch();
    if (filter.trim() === "" || this.#picker === null) return;
    this.#picker = { ...this.#picker, searching: true };
    this.#pause = setTimeout(() => {
      this.#searched = filter;
      this.#search(filter)
        .catch(this.#failed)
        .finally(() => {
          if (this.#searched === filter && this.#picker !== null) this.#picker = { ...this.#picker, searching: false };
          this.#changed();
        });
    }, PAUSE_MS);
  }

  async #search(filter: string): Promise<void> {
    const hits = new Map<string, string>();
    let shownAt = this.#now();
    const show = (): void => {
      if (this.#searched !== filter || this.#picker === null) return;
      this.#picker = withRows(this.#picker, { hits: new Map(hits) });
      shownAt = this.#now();
      this.#peek();
      this.#changed();
    };
    for await (const { session, excerpt } of this.#host.search(filter)) {
      if (this.#searched !== filter) return;
      if (!hits.has(session)) hits.set(session, plainLine(excerpt));
      if (this.#now() - shownAt > HITS_MS) show();
    }
    show();
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
    this.#picker = isOpen ? withRows(this.#picker!, { rows }) : openPicker("history", "Earlier prompts", rows);
  }

  /** The end of the selected conversation. */
  preview(columns: number): readonly Line[] {
    const picker = this.#picker;
    if (picker?.kind !== "sessions") return [];
    const row = picker.matches[picker.selected];
    const found = row === undefined ? undefined : this.#peeked.get(row.id);
    if (found === undefined) return [];
    if (typeof found === "string") return [line(found, { colour: "yellow" })];
    const rows = found.slice(-PREVIEW_ITEMS).flatMap((item) => itemLines(item, previewColumns(columns)));
    // Drop the blank line before the first item.
    return rows.slice(1);
  }

  #peek(): void {
    if (this.#picker?.kind !== "sessions") return;
    const row = this.#picker.matches[this.#picker.selected];
    if (row === undefined || this.#peeked.has(row.id)) return;
    this.#peeked.set(row.id, []);
    this.#host
      .peek(row.id)
      .then((items) => this.#peeked.set(row.id, items))
      .catch((error) => this.#peeked.set(row.id, errorWords(error)))
      .finally(this.#changed);
  }
}
