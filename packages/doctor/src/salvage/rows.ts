import { childAt, rowAt, type SalvagedRow, type Take, type Value } from "./cells.ts";
import type { Encoding, Pages } from "./pages.ts";

/** The rows of a damaged database: first those that its trees reach, then those of the leaves that none reaches. */

export interface SchemaRow {
  readonly type: string;
  readonly name: string;
  readonly table: string;
  readonly root: number;
  readonly sql: string | null;
}

const TREE = 1;
const OVERFLOW = 2;
const FREE = 3;
/** By so many rows of a page, it is told whose it is. */
const ROWS_TO_TELL = 8;

export class PageWalk {
  readonly #pages: Pages;
  /** What each page was used for. */
  readonly #uses: Uint8Array;
  /** Whether a page was missing below the root that was walked last. */
  isBroken = false;

  constructor(pages: Pages) {
    this.#pages = pages;
    this.#uses = new Uint8Array(pages.count + 1);
    this.#markFree();
  }

  /**
   * The rows below a root, as far as its pages are there. A leaf with rows of another kind is left: the page that names
   * it is damaged.
   */
  *rowsBelow(root: number, isKind: (rows: readonly SalvagedRow[]) => boolean): Generator<SalvagedRow> {
    this.isBroken = false;
    const left = [root];
    for (let number = left.pop(); number !== undefined; number = left.pop()) {
      const page = number <= this.#pages.count && this.#uses[number] === 0 ? this.#pages.page(number) : null;
      const tree = page && this.#pages.tree(number);
      if (page === null || tree === null || tree.kind.startsWith("index")) {
        this.isBroken = true;
        continue;
      }
      if (tree.kind === "table-leaf" && tree.cells.length > 0) {
        const rows = [...this.#rowsIn(page, tree.cells.slice(0, ROWS_TO_TELL), () => true)];
        if (!isKind(rows)) {
          this.isBroken = true;
          continue;
        }
      }
      this.#uses[number] = TREE;
      if (tree.kind === "table-leaf") yield* this.#rowsIn(page, tree.cells, this.#take);
      // In their order: the last one is taken first.
      else left.push(tree.right, ...tree.cells.map((at) => childAt(page, at)).toReversed());
    }
  }

  /** The rows of leaves that were not reached, page by page. A second look finds them again. */
  *leavesLeft({ isLook = false } = {}): Generator<readonly SalvagedRow[]> {
    for (let number = 1; number <= this.#pages.count; number++) {
      if (this.#uses[number] !== 0) continue;
      const page = this.#pages.page(number);
      const tree = page && this.#pages.tree(number);
      if (page === null || tree?.kind !== "table-leaf") continue;
      const rows = [...this.#rowsIn(page, tree.cells, isLook ? () => true : this.#take)];
      if (rows.length > 0) yield rows;
    }
  }

  *#rowsIn(page: Buffer, cells: readonly number[], take: Take): Generator<SalvagedRow> {
    for (const at of cells) {
      const row = rowAt(this.#pages, page, at, take);
      if (row) yield row;
    }
  }

  /** A page of overflowing text belongs to one row. */
  readonly #take: Take = (number) => {
    if (number > this.#pages.count || this.#uses[number] !== 0) return false;
    this.#uses[number] = OVERFLOW;
    return true;
  };

  /** Pages that are free hold rows that were deleted. */
  #markFree(): void {
    let trunk = this.#pages.header?.readUInt32BE(32) ?? 0;
    while (trunk > 1 && trunk <= this.#pages.count && this.#uses[trunk] === 0) {
      const page = this.#pages.page(trunk);
      if (page === null) return;
      this.#uses[trunk] = FREE;
      const count = Math.min(page.readUInt32BE(4), (this.#pages.usable - 8) / 4);
      for (let n = 0; n < count; n++) {
        const leaf = page.readUInt32BE(8 + 4 * n);
        if (leaf > 1 && leaf <= this.#pages.count) this.#uses[leaf] = FREE;
      }
      trunk = page.readUInt32BE(0);
    }
  }
}

/** A row of the table that says which tables there are; null if it is none. */
export function schemaRow({ values, isCut }: SalvagedRow, encoding: Encoding): SchemaRow | null {
  const [type, name, table, root, sql] = values;
  const words = [type, name, table].map((value) => textOf(value, encoding));
  if (values.length !== 5 || isCut || words.includes(null) || typeof root !== "bigint") return null;
  if (!["table", "index", "view", "trigger"].includes(words[0]!)) return null;
  return { type: words[0]!, name: words[1]!, table: words[2]!, root: Number(root), sql: textOf(sql, encoding) };
}

export function textOf(value: Value | undefined, encoding: Encoding): string | null {
  if (typeof value !== "object" || value === null || !("text" in value)) return null;
  if (encoding === "utf16be") return Buffer.from(value.text).swap16().toString("utf16le");
  return value.text.toString(encoding === "utf8" ? "utf8" : "utf16le");
}
