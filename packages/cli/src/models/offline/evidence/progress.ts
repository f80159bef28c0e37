/** The part of a summary that records progress, which the model reads to continue the work. */
export interface SavedProgress {
  /** The prompts at work, in the user's words, and how far each has come. */
  readonly tasks: readonly { readonly text: string; readonly progress: Progress }[];
  /**
   * The last message that it covers, since the newest ones may be repeated after it: the last call, the number of messages
   * after that, and a digest of the last one's text.
   */
  readonly through: { readonly call: string; readonly since: number; readonly last: string };
  /** How often the turn at work was interrupted. */
  readonly interruptions: number;
  /** Calls that were made before it, and summaries, this one included. */
  readonly made: number;
  readonly summaries: number;
  /** How many summaries in a row told the same: nothing was achieved between them. */
  readonly idle: number;
  /** The last prompt had been answered. */
  readonly isOver: boolean;
}

/** How far a task has come, by whatever its kind calls it. */
export type Progress = { readonly [name: string]: unknown };

const OPEN = "<offline-progress>";
const CLOSE = "</offline-progress>";

export function writeProgress(carried: SavedProgress): string {
  // The closing mark must not occur in what it encloses.
  return `${OPEN}${JSON.stringify(carried).replaceAll("<", "\\u003c")}${CLOSE}`;
}

/** The last one in the text; null if there is none, or it is not whole. */
export function readProgress(text: string): SavedProgress | null {
  const end = text.lastIndexOf(CLOSE);
  const start = end < 0 ? -1 : text.lastIndexOf(OPEN, end);
  if (start < 0) return null;
  try {
    const value = JSON.parse(text.slice(start + OPEN.length, end)) as Partial<SavedProgress> | null;
    if (!Array.isArray(value?.tasks)) return null;
    const tasks = value.tasks.flatMap((task: { text?: unknown; progress?: unknown } | null) =>
      typeof task?.text === "string" ? [{ text: task.text, progress: (task.progress ?? {}) as Progress }] : [],
    );
    return {
      tasks,
      through: { call: "", since: 0, last: "", ...value.through },
      interruptions: Number(value.interruptions ?? 0),
      made: Number(value.made ?? 0),
      summaries: Number(value.summaries ?? 1),
      idle: Number(value.idle ?? 0),
      isOver: value.isOver === true,
    };
  } catch {
    // Somebody shortened the summary: then it is a text like any other.
    return null;
  }
}
