import { type Bound, type Figure, limitOf, middleOf, type Peer, passes, type Results, type Unit } from "./figure.ts";

/** The table of a run, as lines. */
export function tableLines(results: Results): string[] {
  const head = ["what", "must reach", "median", "spread", "", "behind it"];
  const rows = results.figures.map((figure) => [
    figure.what,
    boundWords(figure.bound, figure.unit),
    numberWords(middleOf(figure), figure.unit),
    spread(figure),
    passes(figure) ? "ok" : "MISSED",
    figure.note ?? "",
  ]);
  const lines = align([head, ...rows]);
  if (results.peers.length > 0) {
    const peers = results.peers.map((peer) => [
      peer.what,
      numberWords(middleOf(peer), peer.unit),
      spread(peer),
      peer.note ?? "",
    ]);
    lines.push("", ...align([["for comparison, held to nothing", "median", "spread", "behind it"], ...peers]));
  }
  return lines;
}

/** One sentence for each figure that was missed. */
export function missedLines(figures: readonly Figure[]): string[] {
  return figures
    .filter((figure) => !passes(figure))
    .map(
      (figure) =>
        `MISSED ${figure.row}: ${figure.what}: ${numberWords(middleOf(figure), figure.unit)}, must be ${boundWords(figure.bound, figure.unit)}`,
    );
}

export function boundWords(bound: Bound, unit: Unit): string {
  const words = "atMost" in bound ? "at most" : "atLeast" in bound ? "at least" : "under";
  return `${words} ${unit === "×" ? `${limitOf(bound)} ×` : `${limitOf(bound)} ${unit}`}`;
}

function spread(measured: Figure | Peer): string {
  const { rounds, unit } = measured;
  if (rounds.length === 1) return "one round";
  return `${numberWords(Math.min(...rounds), unit)} .. ${numberWords(Math.max(...rounds), unit)} (${rounds.length})`;
}

export function numberWords(value: number, unit: Unit): string {
  if (unit === "×") return `${value.toFixed(value < 10 ? 3 : 1)}`;
  return `${value.toFixed(value < 10 ? 2 : 1)} ${unit}`;
}

export function align(rows: readonly (readonly string[])[]): string[] {
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)));
  return rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column]!))
      .join("  ")
      .trimEnd(),
  );
}
