import type { Kill, Receipt } from "./receipt.ts";

/** Null if nothing was streaming. */
export function streamedWords({ streamed: { heard, found } }: Kill): string | null {
  if (heard === 0 && found === 0) return null;
  const rest = heard - found;
  if (found === 0) return `none of the ${heard} streamed characters: all were less than 200 ms old`;
  if (rest <= 0) return `all ${found} characters of the answer being streamed`;
  return `${found} of the ${heard} streamed characters; the rest was less than 200 ms old`;
}

export interface ReceiptLine {
  readonly text: string;
  /** Null: a heading. `-`: continues the line above. */
  readonly mark: "yes" | "NO" | "-" | null;
}

const MORE_MAX = 8;

/** The receipt in words. Pure. */
export function receiptLines(receipt: Receipt): ReceiptLine[] {
  const { acknowledged, there, lost, changed, strange, damage, calls, effects, requests, files, agents } = receipt;
  const { records, messages, starts, results, compactions } = acknowledged;
  const lines: ReceiptLine[] = [{ text: "Receipt", mark: null }];
  const line = (isRight: boolean, text: string, more: readonly string[] = []): void => {
    lines.push({ text, mark: isRight ? "yes" : "NO" });
    for (const one of more.slice(0, MORE_MAX)) lines.push({ text: one, mark: "-" });
    if (more.length > MORE_MAX) lines.push({ text: `and ${more.length - MORE_MAX} more`, mark: "-" });
  };
  line(
    lost.length === 0,
    `${there} of ${records} acknowledged records are there and unchanged (${count(messages, "message")}, ${count(starts, "tool start")}, ${count(results, "tool result")}, ${count(compactions, "compaction")})`,
    lost,
  );
  line(
    changed.length === 0 && damage.length === 0,
    changed.length === 0 && damage.length === 0
      ? `the journal only grew: read after ${count(receipt.kills.length, "kill")}, and each time everything from the time before was still there`
      : "the journal lost or changed records; what the store reported:",
    [...damage, ...changed],
  );
  if (strange.length > 0) line(false, "the journal has text that was never streamed", strange);
  const isOnce = effects.length > 0 && effects.every(({ times }) => times === 1) && calls.startedTwice.length === 0;
  line(
    isOnce,
    isOnce
      ? `no effect happened twice: ${effects.map(({ what }) => `"${what}"`).join(", ")} once each; of ${calls.made} calls, none that is unsafe to repeat was started again`
      : "an effect happened twice or not at all",
    [...effects.map(({ what, times }) => `"${what}": ${times} times`), ...calls.startedTwice].slice(
      isOnce ? Number.POSITIVE_INFINITY : 0,
    ),
  );
  line(
    requests.violations.length === 0,
    `${count(requests.checked, "conversation")} read after the kills, all valid by the provider's rules`,
    requests.violations,
  );
  line(
    files.different.length === 0,
    `${count(files.compared, "file")}, ${files.different.length === 0 ? "all" : "not all"} identical to those of an undisturbed agent`,
    files.different,
  );
  line(
    receipt.completed && agents.unfinished === 0,
    receipt.completed && agents.unfinished === 0
      ? `the turn completed, with ${count(agents.sessions, "sub-agent")}, in ${(receipt.ms / 1000).toFixed(1)} s`
      : "the turn or a sub-agent's turn did not complete",
  );
  if (receipt.missed.length > 0) {
    lines.push({ text: `not reached before the turn ended: ${receipt.missed.join(", ")}`, mark: "-" });
  }
  return lines;
}

function count(n: number, what: string): string {
  return `${n} ${what}${n === 1 ? "" : "s"}`;
}
