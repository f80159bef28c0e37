import { oneLine } from "../text/one-line.ts";
import type { ChangedFile, FolderChanges } from "./decide-call.ts";

const PATH_CHARS = 120;
const GAP_CHARS = 300;
/** At most this many files are named to a person; the others are counted. */
const NAMES_MAX = 5;
const MODEL_NAMES_MAX = 50;
/** So much of the differences is shown to the model. */
const MODEL_DIFF_CHARS = 6_000;

const MARKS = { same: " ", removed: "-", added: "+", gap: " " } as const;

/** What has changed in a folder since a call began: a phrase, for people. Who changed it is not known. */
export function changesWords(changes: FolderChanges): string {
  return phraseOf(changes, NAMES_MAX);
}

/** The same for the model, with the differences. */
export function modelChangesWords(changes: FolderChanges): string {
  const { files } = changes;
  const phrase = phraseOf(changes, MODEL_NAMES_MAX);
  const beyond = files.length === 0 ? " What it may have done elsewhere is not known." : "";
  const said = `${phrase.charAt(0).toUpperCase()}${phrase.slice(1)}.${beyond}`;
  let left = MODEL_DIFF_CHARS;
  const diffs: string[] = [];
  for (const { path, diff } of files) {
    const text = diff?.map((line) => `${MARKS[line.kind]} ${line.text}`).join("\n") ?? "";
    if (text === "" || text.length > left) continue;
    left -= text.length;
    diffs.push(`${oneLine(path, PATH_CHARS)}:\n${text}`);
  }
  return [said, ...diffs].join("\n");
}

function phraseOf({ files, more, gap }: FolderChanges, namesMax: number): string {
  const names = files.slice(0, namesMax).map(fileWords);
  const rest = files.length - names.length + more;
  if (rest > 0) names.push(rest === 1 ? "1 more file" : `${rest} more files`);
  const limits = gap === null ? "" : ` (${oneLine(gap, GAP_CHARS)})`;
  if (names.length > 0) return `changed in the folder since it began: ${names.join(", ")}${limits}`;
  return gap === null
    ? "nothing in the folder has changed since it began"
    : `no change in the folder was found since it began${limits}`;
}

function fileWords({ path, change, lines }: ChangedFile): string {
  const how = change === "changed" && lines ? `+${lines.added} -${lines.removed}` : change;
  return `${oneLine(path, PATH_CHARS)} (${how})`;
}
