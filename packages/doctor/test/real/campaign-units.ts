import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { zstdDecompressSync } from "node:zlib";
import type { Campaign } from "../damage/campaigns.ts";
import type { Unit } from "./agent.ts";

/** What a repaired conversation must still say, and what it may not. */

/** Every text that a fix makes up has one of these. */
const MARK = /holdfast[ _]doctor|lost_call/;
const CUT = "[… The rest was lost; holdfast doctor kept what could be read.]";
/** A shorter text may stand anywhere by chance: it counts as a string of its own only. */
const CHANCE_CHARS = 40;

export interface Loss {
  /** Nothing was lost. */
  readonly isLossless: boolean;
  /** It is known where everything belongs. */
  readonly keepsOrder: boolean;
  /** All bytes of the damaged home. */
  readonly damaged: string;
  readonly campaign: Campaign;
}

/** What is wrong with a conversation after its repair, in words; empty if nothing is. */
export function complaintsAbout(
  before: readonly Unit[],
  after: readonly Unit[],
  { isLossless, keepsOrder, damaged, campaign }: Loss,
): string[] {
  const plain = (unit: Unit): Unit => ({ ...unit, text: campaign.plain?.(unit.text) ?? unit.text });
  const [wanted, have] = [before.map(plain), after.map(plain)];
  const missing = without(wanted, have);
  let added = without(have, wanted);
  const complaints: string[] = [];
  for (const unit of missing) {
    const part = isLossless ? undefined : added.find((other) => isPartOf(other, unit));
    if (part) added = added.filter((other) => other !== part);
    else if (isLossless || (isReadable(unit, damaged) && !isRepeated(unit, have, campaign)))
      complaints.push(`lacks ${wordsOf(unit)}`);
  }
  for (const unit of added) {
    const isOwn = campaign.ownWords?.test(unit.text) === true;
    const isMarked = MARK.test(unit.text) || MARK.test(unit.name ?? "");
    // What a lost compaction had hidden may come to light again.
    const isThere = !wanted.some((other) => keyOf(other) === keyOf(unit)) && isReadable(unit, damaged);
    if (isLossless || !(isMarked || isOwn || isThere)) complaints.push(`adds ${wordsOf(unit)}`);
  }
  const common = (units: readonly Unit[], less: readonly Unit[]): string => {
    const keys = new Set(less.map(keyOf));
    return units
      .map(keyOf)
      .filter((key) => !keys.has(key))
      .join();
  };
  const less = [...missing, ...added, ...without(have, wanted)];
  if (keepsOrder && complaints.length === 0 && common(wanted, less) !== common(have, less))
    complaints.push("is in another order");
  return complaints;
}

/** The bytes of all files below a folder, of databases and packed files too. */
export function textBelow(folder: string): string {
  const texts = filesBelow(folder).map((path) => {
    const bytes = readFileSync(path);
    if (bytes.length < 4 || bytes.readUInt32LE() !== 0xfd2fb528) return bytes.toString("utf8");
    try {
      return zstdDecompressSync(bytes).toString("utf8");
    } catch {
      return "";
    }
  });
  return texts.join("\n");
}

export function filesBelow(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .toSorted()
    .map((path) => join(folder, path))
    .filter((path) => statSync(path).isFile());
}

const keyOf = ({ kind, text, call = "" }: Unit): string => JSON.stringify([kind, text, call]);
const wordsOf = ({ kind, text, call = "" }: Unit): string => `${kind} ${call} ${JSON.stringify(text.slice(0, 90))}`;

function without(units: readonly Unit[], others: readonly Unit[]): Unit[] {
  const counts = new Map<string, number>();
  for (const unit of others) counts.set(keyOf(unit), (counts.get(keyOf(unit)) ?? 0) + 1);
  return units.filter((unit) => {
    const count = counts.get(keyOf(unit)) ?? 0;
    counts.set(keyOf(unit), count - 1);
    return count <= 0;
  });
}

/** Whether it is what could be read of another: its beginning with a mark, or all but a few characters. */
function isPartOf(unit: Unit, whole: Unit): boolean {
  if (unit.kind !== whole.kind || unit.call !== whole.call) return false;
  const cut = unit.text.indexOf(CUT);
  if (cut >= 0) return whole.text.startsWith(unit.text.slice(0, cut).trimEnd());
  const pieces = unit.text.split(/\ufffd+/);
  if (pieces.length === 1) return false;
  let at = 0;
  return pieces.every((piece) => {
    const found = whole.text.indexOf(piece, at);
    at = found + piece.length;
    return found >= 0;
  });
}

/** Whether the program itself says a result again, that is still there once. */
function isRepeated(unit: Unit, have: readonly Unit[], { ownWords }: Campaign): boolean {
  const output = ownWords?.test(unit.text) === true ? /"?output\W+(.*?)\W*$/s.exec(unit.text)?.[1] : undefined;
  return output !== undefined && have.some(({ text }) => text.includes(output.slice(0, CHANCE_CHARS)));
}

/** Whether its text stands anywhere in what the damage left. */
function isReadable({ text }: Unit, damaged: string): boolean {
  if (text === "") return false;
  const escaped = JSON.stringify(text).slice(1, -1);
  const needles = escaped.length < CHANCE_CHARS ? [`"${escaped}"`] : [escaped, text];
  return needles.some((needle) => damaged.includes(needle));
}
