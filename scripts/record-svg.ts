/**
 * A terminal's output over time as an animated SVG: no script in it, only CSS, so that it plays wherever images are
 * shown. Pure.
 */

/** What came, and when. */
export interface Chunk {
  readonly ms: number;
  readonly text: string;
}

export interface SvgOptions {
  readonly columns: number;
  readonly rows: number;
  readonly title: string;
  /** For those who do not see it. */
  readonly description: string;
  /** How long the last picture stands. */
  readonly holdMs: number;
  /** Longer silences are shortened to this. */
  readonly silenceMsMax: number;
}

/** Words of one style that appear at one moment. */
interface Run {
  text: string;
  readonly column: number;
  readonly slot: number;
  readonly style: string;
}

const SLOT_MS = 100;
const CELL = { width: 8.4, height: 19 } as const;
const MARGIN = { side: 16, top: 40, bottom: 14 } as const;

/** Of the numbers in an SGR sequence: what they switch on, and off. */
const SGR: Readonly<Record<string, readonly [style: string, group: string]>> = {
  "1": ["b", "bold"],
  "2": ["d", "bold"],
  "22": ["", "bold"],
  "31": ["r", "colour"],
  "32": ["g", "colour"],
  "33": ["y", "colour"],
  "35": ["m", "colour"],
  "36": ["c", "colour"],
  "97": ["w", "colour"],
  "39": ["", "colour"],
  "41": ["R", "ground"],
  "49": ["", "ground"],
};

const CSS = `svg{background:#0d1117}text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;fill:#e6edf3;white-space:pre}
.b{font-weight:700}.d{fill:#8b949e}.r{fill:#ff7b72}.g{fill:#3fb950}.y{fill:#e3b341}.m{fill:#bc8cff}.c{fill:#56d4dd}.w{fill:#fff}.R{fill:#da3633}`;

export function svgOf(chunks: readonly Chunk[], options: SvgOptions): string {
  const { lines, lastSlot } = linesOf(chunks, options.silenceMsMax);
  const { columns, rows, title, description, holdMs } = options;
  const totalMs = lastSlot * SLOT_MS + holdMs;
  const percent = (slot: number): string => `${round((slot * SLOT_MS * 100) / totalMs)}%`;
  const slots = [...new Set(lines.flat().map(({ slot }) => slot))].sort((a, b) => a - b);
  const frames = slots.map(
    (slot) => `@keyframes k${slot}{0%{opacity:0}${percent(slot)}{opacity:1}}.k${slot}{animation-name:k${slot}}`,
  );
  const scrolls = scrollsOf(lines, rows);
  const at = (top: number): string => `transform:translateY(${-top * CELL.height}px)`;
  const scroll = scrolls.map(({ slot, top }) => `${percent(slot)}{${at(top)}}`).join("");
  const last = scrolls.at(-1)?.top ?? 0;
  const width = Math.ceil(columns * CELL.width + 2 * MARGIN.side);
  const height = rows * CELL.height + MARGIN.top + MARGIN.bottom;
  const body = lines.flatMap((line, row) => line.map((run) => runSvg(run, row)));
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-labelledby="t e">
<title id="t">${escaped(title)}</title><desc id="e">${escaped(description)}</desc>
<style>${CSS}
.a{animation:${round(totalMs / 1000)}s step-end infinite}#s{${at(last)};animation:s ${round(totalMs / 1000)}s step-end infinite}
@keyframes s{0%{${at(0)}}${scroll}}
${frames.join("\n")}
@media (prefers-reduced-motion:reduce){.a,#s{animation:none}}</style>
<rect width="${width}" height="${height}" rx="10" fill="#0d1117" stroke="#484f58"/>
<circle cx="20" cy="18" r="6" fill="#ff5f57"/><circle cx="40" cy="18" r="6" fill="#febc2e"/><circle cx="60" cy="18" r="6" fill="#28c840"/>
<svg x="${MARGIN.side}" y="${MARGIN.top}" width="${columns * CELL.width}" height="${rows * CELL.height}" overflow="hidden"><g id="s" xml:space="preserve">
${body.join("\n")}
</g></svg>
</svg>
`;
}

function runSvg({ text, column, slot, style }: Run, row: number): string {
  const x = round(column * CELL.width);
  const width = round([...text].length * CELL.width);
  const classes = style.split(" ").filter((one) => one !== "" && one !== "R");
  const ground = style.includes("R")
    ? `<rect class="a k${slot} R" x="${x}" y="${row * CELL.height}" width="${width}" height="${CELL.height + 0.5}"/>`
    : "";
  const words = text.trim();
  if (words === "") return ground;
  // Not all that show it keep spaces at the beginning. The length is given, so that columns stand under each other in
  // any font.
  const left = round((column + text.length - text.trimStart().length) * CELL.width);
  const length = round([...words].length * CELL.width);
  return `${ground}<text class="${["a", `k${slot}`, ...classes].join(" ")}" x="${left}" y="${row * CELL.height + 14}" textLength="${length}">${escaped(words)}</text>`;
}

/** When the first line that is shown is another one. */
function scrollsOf(
  lines: readonly (readonly Run[])[],
  rows: number,
): { readonly slot: number; readonly top: number }[] {
  const tops = new Map<number, number>();
  let latest = 0;
  for (const [row, line] of lines.entries()) {
    latest = Math.max(latest, line[0]?.slot ?? latest);
    if (row >= rows) tops.set(latest, row - rows + 1);
  }
  return [...tops].map(([slot, top]) => ({ slot, top }));
}

/** What a terminal would show, for output that only goes on: colours, and new lines. Other sequences are left out. */
function linesOf(
  chunks: readonly Chunk[],
  silenceMsMax: number,
): { readonly lines: Run[][]; readonly lastSlot: number } {
  const lines: Run[][] = [[]];
  const on = new Map<string, string>();
  let column = 0;
  let clock = 0;
  let before = 0;
  for (const { ms, text } of chunks) {
    clock += Math.min(ms - before, silenceMsMax);
    before = ms;
    const slot = Math.round(clock / SLOT_MS);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is to be found.
    for (const [piece] of text.matchAll(/\x1b\[[0-?]*[ -/]*[@-~]|\x1b.|\r|\n|[^\x1b\r\n]+/g)) {
      if (piece === "\n") {
        lines.push([]);
        column = 0;
      } else if (piece.startsWith("\x1b")) {
        const codes = piece.endsWith("m") ? piece.slice(2, -1).split(";") : [];
        for (const code of codes) {
          const [style, group] = SGR[code] ?? [];
          if (group === undefined) on.clear();
          else if (style === "") on.delete(group);
          else on.set(group, style!);
        }
      } else if (piece !== "\r") {
        add(lines.at(-1)!, { text: piece, column, slot, style: [...on.values()].sort().join(" ") });
        column += [...piece].length;
      }
    }
  }
  while (lines.at(-1)?.length === 0) lines.pop();
  return { lines, lastSlot: Math.round(clock / SLOT_MS) };
}

function add(line: Run[], run: Run): void {
  const last = line.at(-1);
  // A space has no colour of its own.
  const isSame =
    last?.slot === run.slot && (last.style === run.style || (run.text.trim() === "" && !last.style.includes("R")));
  if (isSame) last.text += run.text;
  else line.push(run);
}

function round(value: number): number {
  return Math.round(value * 100) / 100;
}

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
