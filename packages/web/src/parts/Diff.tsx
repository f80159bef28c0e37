import { useState } from "preact/hooks";
import type { DiffRow } from "../api/wire.ts";
import { visible } from "../text/visible.ts";

const ROWS_MAX = 40;
/** Nobody reads more, and the page must stay small. */
const ROWS_LIMIT = 1500;
const SIGNS = { added: "+", removed: "−", same: " ", gap: " " } as const;
const WORDS = { added: "added: ", removed: "removed: ", same: "", gap: "" } as const;

/** A change of a file, line by line. */
export function Diff({ rows, max = ROWS_MAX }: { readonly rows: readonly DiffRow[]; readonly max?: number }) {
  const [isWhole, setWhole] = useState(false);
  const shown = rows.slice(0, isWhole ? ROWS_LIMIT : max);
  const rest = rows.length - shown.length;
  return (
    <div class="diff">
      <div class="diff-rows" role="group" aria-label="Changes" tabIndex={0}>
        {shown.map((row, index) => (
          <div key={index} class={`diff-${row.kind}`}>
            <span class="diff-sign" aria-hidden="true">
              {SIGNS[row.kind]}
            </span>
            <span class="for-readers">{WORDS[row.kind]}</span>
            <span class="diff-text">{visible(row.text) || " "}</span>
          </div>
        ))}
      </div>
      {rest > 0 ? (
        isWhole ? (
          <p class="hint">{rest} more lines are in the export.</p>
        ) : (
          <button type="button" class="more-button" onClick={() => setWhole(true)}>
            Show {rest} more lines
          </button>
        )
      ) : null}
    </div>
  );
}

/** `+12 −3`. */
export function DiffCounts({ rows }: { readonly rows: readonly DiffRow[] }) {
  const added = rows.filter(({ kind }) => kind === "added").length;
  const removed = rows.filter(({ kind }) => kind === "removed").length;
  return (
    <span class="diff-counts">
      <span class="count-added">+{added}</span> <span class="count-removed">−{removed}</span>
    </span>
  );
}
