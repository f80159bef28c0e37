/** One row of a diff. `gap`: `text` says how many equal lines are left out. */
export interface DiffRow {
  readonly kind: "same" | "removed" | "added" | "gap";
  readonly text: string;
}

/** Equal lines shown around each change. */
const CONTEXT = 3;
/** Beyond this, the texts have little in common: all of one is removed, and all of the other added. */
const CHANGES_MAX = 1_000;
const LINES_MAX = 50_000;

/** The difference between two texts, line by line, with some equal lines around each change. Bounded time and space. */
export function lineDiff(before: string, after: string): DiffRow[] {
  const [old, fresh] = [linesOf(before), linesOf(after)];
  let start = 0;
  while (start < old.length && start < fresh.length && old[start] === fresh[start]) start += 1;
  let end = 0;
  const most = Math.min(old.length, fresh.length) - start;
  while (end < most && old.at(-1 - end) === fresh.at(-1 - end)) end += 1;
  const same = (lines: readonly string[]): DiffRow[] => lines.map((text) => ({ kind: "same", text }));
  const rows = [
    ...same(old.slice(0, start)),
    ...changes(old.slice(start, old.length - end), fresh.slice(start, fresh.length - end)),
    ...same(old.slice(old.length - end)),
  ];
  return withGaps(rows);
}

/** Without a last empty line, which is only the end of the one before. */
function linesOf(text: string): string[] {
  if (text === "") return [];
  const lines = text.replaceAll("\r\n", "\n").split("\n");
  return lines.at(-1) === "" ? lines.slice(0, -1) : lines;
}

/** The shortest list of changes (Myers), or all of both if they differ in too much. */
function changes(old: readonly string[], fresh: readonly string[]): DiffRow[] {
  const script = old.length + fresh.length > LINES_MAX ? null : shortestScript(old, fresh);
  if (script !== null) return script;
  return [
    ...old.map((text): DiffRow => ({ kind: "removed", text })),
    ...fresh.map((text): DiffRow => ({ kind: "added", text })),
  ];
}

function shortestScript(old: readonly string[], fresh: readonly string[]): DiffRow[] | null {
  const limit = Math.min(old.length + fresh.length, CHANGES_MAX);
  // For each number of changes: how far the old text is matched, by diagonal (old index minus new index).
  const reached: Map<number, number>[] = [];
  let last = new Map<number, number>([[1, 0]]);
  for (let count = 0; count <= limit; count++) {
    const now = new Map<number, number>();
    for (let diagonal = -count; diagonal <= count; diagonal += 2) {
      const isDown = diagonal === -count || (diagonal !== count && at(last, diagonal - 1) < at(last, diagonal + 1));
      let x = isDown ? at(last, diagonal + 1) : at(last, diagonal - 1) + 1;
      while (x < old.length && x - diagonal < fresh.length && old[x] === fresh[x - diagonal]) x += 1;
      now.set(diagonal, x);
      if (x >= old.length && x - diagonal >= fresh.length) return trace([...reached, now], old, fresh);
    }
    reached.push(now);
    last = now;
  }
  return null;
}

function at(row: ReadonlyMap<number, number>, diagonal: number): number {
  return row.get(diagonal) ?? -1;
}

/** Walks back from the end of both texts. */
function trace(reached: readonly Map<number, number>[], old: readonly string[], fresh: readonly string[]): DiffRow[] {
  const rows: DiffRow[] = [];
  let [x, y] = [old.length, fresh.length];
  for (let count = reached.length - 1; count > 0; count--) {
    const last = reached[count - 1]!;
    const diagonal = x - y;
    const isDown = diagonal === -count || (diagonal !== count && at(last, diagonal - 1) < at(last, diagonal + 1));
    const from = isDown ? at(last, diagonal + 1) : at(last, diagonal - 1);
    const fromY = from - (isDown ? diagonal + 1 : diagonal - 1);
    while (x > (isDown ? from : from + 1)) {
      x -= 1;
      y -= 1;
      rows.push({ kind: "same", text: old[x]! });
    }
    rows.push(isDown ? { kind: "added", text: fresh[fromY]! } : { kind: "removed", text: old[from]! });
    [x, y] = [from, fromY];
  }
  while (x > 0) rows.push({ kind: "same", text: old[--x]! });
  return removedFirst(rows.reverse());
}

/** Between equal lines, what was removed comes before what was added. */
function removedFirst(rows: readonly DiffRow[]): DiffRow[] {
  const out: DiffRow[] = [];
  let added: DiffRow[] = [];
  for (const row of rows) {
    if (row.kind === "added") added.push(row);
    else {
      if (row.kind === "same") {
        out.push(...added);
        added = [];
      }
      out.push(row);
    }
  }
  return [...out, ...added];
}

function withGaps(rows: readonly DiffRow[]): DiffRow[] {
  const isNear = new Uint8Array(rows.length);
  for (const [i, { kind }] of rows.entries()) {
    if (kind === "same") continue;
    isNear.fill(1, Math.max(0, i - CONTEXT), i + CONTEXT + 1);
  }
  const out: DiffRow[] = [];
  let left = 0;
  const close = (): void => {
    if (left > 0) out.push({ kind: "gap", text: `… ${left} equal ${left === 1 ? "line" : "lines"}` });
    left = 0;
  };
  for (const [i, row] of rows.entries()) {
    if (isNear[i] === 0) left += 1;
    else {
      close();
      out.push(row);
    }
  }
  close();
  return out;
}

const MARKS = { same: " ", removed: "-", added: "+", gap: " " } as const;

/** The row as text, with its mark. */
export function diffRowText({ kind, text }: DiffRow): string {
  return `${MARKS[kind]} ${text}`.trimEnd();
}
