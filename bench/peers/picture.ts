import { escapeXml } from "../plot.ts";
import { type Cell, type Comparison, middleOf, type PeerResult } from "./comparison.ts";
import { isOurs, type Survives } from "./roster.ts";
import { amount, type Unit } from "./words.ts";

/** One column of bars. */
interface Column {
  readonly title: string;
  readonly under: string;
  readonly unit: Unit;
  readonly of: (peer: PeerResult) => Cell | undefined;
}

const [LEFT, COLUMN, BAR, ROW, WIDTH] = [196, 208, 118, 25, 836] as const;
/**
 * A bar is cut, or the others could not be seen, if it is this many times as long as the shortest of Holdfast's and
 * clearly longer than the longest. What is about as long as one of Holdfast's is never cut.
 */
const LONGEST = { ofShortest: 12, ofLongest: 1.5 };
/** The length of session that all stores reach. */
const AGE = 1000;

const STYLE = `
  svg { --paper: #ffffff; --ink: #1f2328; --faint: #59636e; --ours: #0969da; --theirs: #afb8c1; --line: #d1d9e0; }
  @media (prefers-color-scheme: dark) {
    svg { --paper: #0d1117; --ink: #f0f6fc; --faint: #9198a1; --ours: #4493f8; --theirs: #59636e; --line: #3d444d; }
  }
  .paper { fill: var(--paper); }
  .ours { fill: var(--ours); }
  .theirs { fill: var(--theirs); }
  .cut { stroke: var(--paper); stroke-width: 3; }
  .line { stroke: var(--line); }
  text { fill: var(--ink); font-size: 12px; }
  .faint { fill: var(--faint); font-size: 11px; }
  .bold { font-weight: 600; }
  .title { font-weight: 600; font-size: 13px; }`;

/** The picture of the README: a row per store, a column per job, and shorter is better. */
export function peersPicture(comparison: Comparison): string {
  const { peers, measured, quick } = comparison;
  const columns = columnsOf(comparison);
  const parts: string[] = [];
  columns.forEach((column, i) => {
    parts.push(text(LEFT + i * COLUMN, 24, column.title, "title"), text(LEFT + i * COLUMN, 40, column.under, "faint"));
  });
  parts.push(text(16, 24, "Shorter is better", "faint"));
  let y = 54;
  const group = (survives: Survives, heading: string): void => {
    parts.push(`<line class="line" x1="16" x2="${WIDTH - 16}" y1="${y}" y2="${y}"/>`);
    parts.push(text(16, y + 18, heading, "faint"));
    y += 26;
    for (const peer of peers.filter((peer) => peer.survives === survives)) {
      parts.push(text(16, y + 16, shortName(peer), isOurs(peer) ? "bold" : ""));
      columns.forEach((column, i) => {
        parts.push(...bar(peer, column, longestOf(column, peers), LEFT + i * COLUMN, y));
      });
      y += ROW;
    }
    y += 10;
  };
  group("kill", "What is stored survives when the process is killed");
  group("power", "It also survives a power cut");
  const hint = quick ? "quick run, provisional; " : "";
  parts.push(text(16, y + 10, `Medians; ${hint}${measured.slice(0, 10)}. Cut bars are longer than shown.`, "faint"));
  const height = y + 24;
  const title = "Time to store a message, to resume and to list conversations: Holdfast and other stores";
  return `${[
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" font-family="system-ui, -apple-system, 'Segoe UI', sans-serif" role="img" aria-label="${title}">`,
    `<title>${title}</title>`,
    `<style>${STYLE}\n</style>`,
    `<rect class="paper" width="${WIDTH}" height="${height}" rx="6"/>`,
    ...parts,
    "</svg>",
  ].join("\n")}\n`;
}

function columnsOf({ plan }: Comparison): readonly Column[] {
  const age = plan.ages.includes(AGE) ? AGE : plan.ages[0]!;
  const resumed = plan.resumes.at(-1)!;
  const number = (value: number): string => value.toLocaleString("en");
  return [
    {
      title: "Store a message",
      under: `in a conversation of ${number(age)}`,
      unit: "µs",
      of: ({ append }) => storedAt(append, age),
    },
    {
      title: "Resume a conversation",
      under: `of ${number(resumed)} messages`,
      unit: "ms",
      of: (peer) => (peer.readsLike ? undefined : peer.resumeMs[resumed]),
    },
    {
      title: "List conversations",
      under: `${number(plan.sessions)} of them`,
      unit: "ms",
      of: (peer) => (peer.readsLike ? undefined : peer.listMs),
    },
  ];
}

/** Of a store that did not get to this age: more than at the last age that it got to. */
function storedAt(append: PeerResult["append"], age: number): Cell | undefined {
  const reached = Object.keys(append)
    .map(Number)
    .filter((other) => other <= age && "rounds" in append[other]!);
  const last = Math.max(...reached);
  return reached.length === 0 || last === age ? append[age] : { over: middleOf(append[last])! };
}

/** The value that fills a column: the largest that is not cut. */
function longestOf(column: Column, peers: readonly PeerResult[]): number {
  const valuesOf = (some: readonly PeerResult[]): number[] =>
    some.flatMap((peer) => {
      const value = middleOf(column.of(peer));
      return value === null ? [] : [value];
    });
  const ours = valuesOf(peers.filter(isOurs));
  const limit = Math.max(Math.min(...ours) * LONGEST.ofShortest, Math.max(...ours) * LONGEST.ofLongest);
  return Math.max(0, ...valuesOf(peers).filter((value) => !(value > limit)));
}

function bar(peer: PeerResult, column: Column, longest: number, x: number, y: number): string[] {
  const cell = column.of(peer);
  if (!cell) return [text(x, y + 16, "as above", "faint")];
  const value = middleOf(cell);
  if (value === null) return [text(x, y + 16, "–", "faint")];
  const isCut = "over" in cell || value > longest;
  const width = isCut ? BAR : Math.max(2, (value / longest) * (BAR - 14));
  const kind = isOurs(peer) ? "ours" : "theirs";
  const words = `${"over" in cell ? "> " : ""}${amount(value, column.unit)}`;
  const parts = [
    `<rect class="${kind}" x="${x}" y="${y + 4}" width="${Math.round(width * 10) / 10}" height="16" rx="2"/>`,
  ];
  if (isCut)
    for (const at of [BAR - 20, BAR - 13])
      parts.push(`<line class="cut" x1="${x + at}" x2="${x + at + 6}" y1="${y + 22}" y2="${y + 2}"/>`);
  parts.push(text(x + Math.round(width) + 6, y + 16, words, isOurs(peer) ? "bold" : ""));
  return parts;
}

const SHORT: Readonly<Record<string, string>> = {
  holdfast: "Holdfast (process)",
  "holdfast-power": "Holdfast (default)",
  "sqlite-normal": "SQLite, a row per message",
  "sqlite-full": "SQLite, synchronous=FULL",
  gemini: "Gemini CLI",
  mastra: "Mastra, libsql",
  "whole-file": "whole file per message",
  langgraph: "LangGraph, SqliteSaver",
  "langgraph-holdfast": "LangGraph, HoldfastSaver",
};

function shortName({ key, name }: PeerResult): string {
  return SHORT[key] ?? name;
}

function text(x: number, y: number, words: string, kind: string): string {
  return `<text x="${x}" y="${y}"${kind ? ` class="${kind}"` : ""}>${escapeXml(words)}</text>`;
}
