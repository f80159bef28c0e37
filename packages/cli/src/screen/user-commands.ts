import { plain } from "../terminal/index.ts";
import type { Renderer } from "./drawing/renderer.ts";
import { type Editor, withChip, withInserted } from "./input/editor.ts";
import { runUserCommand } from "./input/user-command.ts";
import { line } from "./lines/line.ts";

/** Longer output is in the prompt, but not on the screen. */
const ROWS_MAX = 40;

/** Runs `!command` lines, one at a time, and puts what they print into the next prompt, where it can be taken out. */
export class UserCommands {
  readonly #renderer: Renderer;
  readonly #edit: (change: (editor: Editor) => Editor) => void;
  #running: { readonly words: string; readonly stop: AbortController } | null = null;

  constructor(renderer: Renderer, edit: (change: (editor: Editor) => Editor) => void) {
    this.#renderer = renderer;
    this.#edit = edit;
  }

  /** For the status line. */
  get running(): string | null {
    return this.#running?.words ?? null;
  }

  /** Stops the command that runs; false if there is none. */
  stop(): boolean {
    this.#running?.stop.abort();
    return this.#running !== null;
  }

  async run(command: string, cwd: string): Promise<void> {
    if (this.#running) throw new Error(`"${this.#running.words}" is still running. Esc stops it.`);
    const stop = new AbortController();
    this.#running = { words: `running ${plain(command).slice(0, 60)}`, stop };
    try {
      const { output, failure } = await runUserCommand(command, {
        cwd,
        signal: stop.signal,
        onOutput: () => undefined,
      });
      this.#show(command, output, failure);
      const ended = failure === null ? "" : ` (${failure})`;
      const text = `I ran \`${command}\`${ended}:\n\n${fenced(output)}\n`;
      this.#edit((editor) => withInserted(withChip(editor, `output of ${command}`, text), " "));
    } finally {
      this.#running = null;
    }
  }

  #show(command: string, output: string, failure: string | null): void {
    const rows = plain(output).trimEnd().split("\n");
    const left = rows.length - ROWS_MAX;
    this.#renderer.write([
      line(""),
      line(`! ${plain(command)}`, { bold: true }),
      ...(output.trim() === "" ? [] : rows.slice(0, ROWS_MAX).map((row) => line(`  ${row}`, { dim: true }))),
      ...(left > 0 ? [line(`  … and ${left} more lines`, { dim: true })] : []),
      ...(failure === null ? [] : [line(`  ended with ${failure}`, { colour: "yellow" })]),
    ]);
  }
}

/** In a code block that nothing in the text can end. */
function fenced(text: string): string {
  const runs = [...text.matchAll(/`{3,}/gu)].map(([run]) => run.length);
  const fence = "`".repeat(Math.max(3, ...runs.map((length) => length + 1)));
  return `${fence}\n${text.trimEnd()}\n${fence}`;
}
