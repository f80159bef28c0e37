/** The part of a summary that records progress, which the model reads to continue the work. */
export interface SavedProgress {
  /** The prompts in progress, in the user's words, and how far each has got. */
  readonly tasks: readonly { readonly text: string; readonly progress: Progress }[];
  /**
   * The last message that it covers, since the newest ones may be repeated after it: the last call, the number of
   * messages after that, and a digest of the last one's text.
   */
  readonly through: { readonly call: string; readonly since: number; readonly last: string };
  /** How often the current turn was interrupted. */
  readonly interruptions: number;
  /** How many calls came before it. `summaries` includes this one. */
  readonly made: number;
  readonly summaries: number;
  /** How many summaries in a row were the same: nothing was achieved between them. */
  readonly idle: number;
  /** Whether the last prompt was answered, or its turn left. */
  readonly isOver: boolean;
}

/** How far a task has got; each kind of task has its own members. */
export type Progress = { readonly [name: string]: unknown };

const OPEN = "<offline-progress>";
const CLOSE = "</offline-progress>";

export function writeProgress(carried: SavedProgress): string {
  // The closing mark must not occur in the content.
  return `${OPEN}${JSON.stringify(carried).replaceAll("<", "\\u003c")}${CLOSE}`;
}

/** The last one in the text; null if there is none, or it is damaged. */
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
    // Someone shortened the summary: treat it as ordinary text.
    return null;
  }
}
