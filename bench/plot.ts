import { type AgePoint, type Figure, limitOf, middleOf, passes } from "./figure.ts";
import { boundWords, numberWords } from "./report.ts";

const INK = "#1f2328";
const FAINT = "#d0d7de";
const GOOD = "#1a7f37";
const BAD = "#cf222e";
const COLOURS = ["#0969da", "#6e7781", "#bc4c00", "#8250df"];

/**
 * Every figure as a share of what it may be: the limit is the line at 1, and left of it is good. A bar from the best to
 * the worst round, and a dot at the median.
 */
export function ratiosPlot(figures: readonly Figure[], caption: string): string {
  const [left, right, top, step] = [520, 800, 60, 26];
  const most = 1.5;
  const x = (share: number): number => left + ((right - left) * Math.max(0, Math.min(most, share))) / most;
  const parts = [text(16, 24, "What was measured, as a share of what it may be", { size: 15, weight: 600 })];
  parts.push(text(16, 42, caption, { size: 11, fill: "#57606a" }));
  const bottom = top + figures.length * step;
  for (const share of [0, 0.5, 1, 1.5]) {
    parts.push(line(x(share), top - 4, x(share), bottom, share === 1 ? INK : FAINT, share === 1 ? 1.5 : 1));
    parts.push(text(x(share), bottom + 16, share === 1 ? "limit" : `${share * 100} %`, { size: 11, anchor: "middle" }));
  }
  figures.forEach((figure, i) => {
    const y = top + i * step + step / 2;
    const shares = figure.rounds.map((value) => shareOf(figure, value));
    const colour = passes(figure) ? GOOD : BAD;
    const [from, to] = [x(Math.min(...shares)), x(Math.max(...shares))];
    parts.push(text(left - 12, y + 4, figure.what, { size: 12, anchor: "end" }));
    parts.push(line(from, y, Math.max(to, from + 1), y, colour, 6, 0.3));
    parts.push(`<circle cx="${round(x(shareOf(figure, middleOf(figure))))}" cy="${y}" r="4.5" fill="${colour}"/>`);
    const words = `${numberWords(middleOf(figure), figure.unit)} (${boundWords(figure.bound, figure.unit)})`;
    parts.push(text(right + 12, y + 4, words, { size: 12 }));
  });
  return svg(1010, bottom + 32, parts);
}

/** How long one append takes (p50), over how many records the session holds. Both axes are logarithmic. */
export function agePlot(points: readonly AgePoint[], caption: string): string {
  const [left, right, top, bottom] = [70, 640, 64, 340];
  const powers = (values: readonly number[]): [number, number] => [
    Math.floor(Math.log10(Math.min(...values))),
    Math.ceil(Math.log10(Math.max(...values))),
  ];
  const [x0, x1] = powers(points.map((point) => point.records));
  const [y0, y1] = powers(points.map((point) => point.p50Us));
  const x = (records: number): number => left + ((Math.log10(records) - x0) / Math.max(1, x1 - x0)) * (right - left);
  const y = (us: number): number => bottom - ((Math.log10(us) - y0) / Math.max(1, y1 - y0)) * (bottom - top);
  const parts = [text(16, 24, "One append over the age of a session (p50)", { size: 15, weight: 600 })];
  parts.push(text(16, 42, caption, { size: 11, fill: "#57606a" }));
  for (let power = x0; power <= x1; power++) {
    parts.push(line(x(10 ** power), top, x(10 ** power), bottom, FAINT, 1));
    parts.push(text(x(10 ** power), bottom + 18, (10 ** power).toLocaleString("en"), { size: 11, anchor: "middle" }));
  }
  for (let power = y0; power <= y1; power++) {
    parts.push(line(left, y(10 ** power), right, y(10 ** power), FAINT, 1));
    parts.push(text(left - 8, y(10 ** power) + 4, microseconds(10 ** power), { size: 11, anchor: "end" }));
  }
  parts.push(text((left + right) / 2, bottom + 38, "records in the session", { size: 12, anchor: "middle" }));
  const labels: { at: number; y: number; words: string; colour: string }[] = [];
  [...new Set(points.map((point) => point.who))].forEach((who, i) => {
    const colour = COLOURS[i % COLOURS.length]!;
    const own = points.filter((point) => point.who === who).sort((a, b) => a.records - b.records);
    const path = own.map((point) => `${round(x(point.records))},${round(y(point.p50Us))}`).join(" ");
    parts.push(`<polyline points="${path}" fill="none" stroke="${colour}" stroke-width="2"/>`);
    for (const { records, p50Us } of own)
      parts.push(`<circle cx="${round(x(records))}" cy="${round(y(p50Us))}" r="3.5" fill="${colour}"/>`);
    const last = own.at(-1)!;
    labels.push({
      at: x(last.records) + 10,
      y: y(last.p50Us) + 4,
      words: `${who}, ${microseconds(last.p50Us)}`,
      colour,
    });
  });
  // Lines that end close together: the upper label keeps its place, the next one moves down.
  labels.sort((a, b) => a.y - b.y);
  labels.forEach((label, i) => {
    if (i > 0) label.y = Math.max(label.y, labels[i - 1]!.y + 15);
    parts.push(text(label.at, label.y, label.words, { size: 12, fill: label.colour }));
  });
  return svg(860, bottom + 54, parts);
}

/** Of what is to stay small, the part of the limit that it takes; of what is to be large, the other way round. */
function shareOf(figure: Figure, value: number): number {
  const limit = limitOf(figure.bound);
  return "atLeast" in figure.bound ? limit / value : value / limit;
}

function microseconds(us: number): string {
  return us >= 1000 ? `${round(us / 1000)} ms` : `${round(us)} µs`;
}

function text(
  x: number,
  y: number,
  words: string,
  style: { size: number; fill?: string; anchor?: "end" | "middle"; weight?: number },
): string {
  const anchor = style.anchor ? ` text-anchor="${style.anchor}"` : "";
  const weight = style.weight ? ` font-weight="${style.weight}"` : "";
  return `<text x="${round(x)}" y="${round(y)}" font-size="${style.size}" fill="${style.fill ?? INK}"${anchor}${weight}>${escapeXml(words)}</text>`;
}

function line(x1: number, y1: number, x2: number, y2: number, colour: string, width: number, opacity = 1): string {
  const at = `x1="${round(x1)}" y1="${round(y1)}" x2="${round(x2)}" y2="${round(y2)}"`;
  return `<line ${at} stroke="${colour}" stroke-width="${width}" stroke-opacity="${opacity}"/>`;
}

function svg(width: number, height: number, parts: readonly string[]): string {
  const head = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" font-family="system-ui, sans-serif">`;
  return `${[head, `<rect width="${width}" height="${height}" fill="#ffffff"/>`, ...parts, "</svg>"].join("\n")}\n`;
}

export function escapeXml(words: string): string {
  return words.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
