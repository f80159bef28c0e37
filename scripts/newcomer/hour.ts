import { commandsIn, DOCUMENTS, subcommandsIn } from "./documents.ts";
import type { Answer, Shell } from "./shell.ts";

/** What a command must show, and how it must end. */
export interface Expected {
  readonly sees?: readonly RegExp[];
  readonly exitCode?: number;
  /** What is typed in place of the documented command: an id that exists, a folder of this hour's. */
  readonly typed?: string;
}

/** One newcomer's hour at a shell: types commands, compares what appears, and remembers which were typed. */
export class Hour {
  readonly #shell: Shell;
  readonly #tell: (line: string) => void;
  readonly #typed = new Set<string>();
  readonly #skipped = new Map<string, string>();

  constructor(shell: Shell, tell: (line: string) => void) {
    this.#shell = shell;
    this.#tell = tell;
  }

  /** Types a command as a document has it. Throws if something else appears than expected. */
  async types(documented: string, { sees = [], exitCode = 0, typed = documented }: Expected = {}): Promise<Answer> {
    this.#typed.add(documented);
    const start = performance.now();
    const answer = await this.#shell.enter(typed);
    for (const wanted of sees) {
      if (!wanted.test(answer.text)) throw new Error(`"${typed}" does not show ${wanted}:\n${answer.text}`);
    }
    if (answer.exitCode !== exitCode)
      throw new Error(`"${typed}" ended with ${answer.exitCode}, not with ${exitCode}:\n${answer.text}`);
    this.#tell(`${typed}  (${Math.round(performance.now() - start)} ms)`);
    return answer;
  }

  /** Starts a command that takes over the terminal, does something there, and waits for its end. */
  async uses(documented: string, work: (shell: Shell) => Promise<void>, typed = documented): Promise<void> {
    this.#typed.add(documented);
    const before = await this.#shell.start(typed);
    await work(this.#shell);
    const { exitCode, text } = await this.#shell.ended(before);
    if (exitCode !== 0) throw new Error(`"${typed}" ended with ${exitCode}:\n${text}`);
    this.#tell(typed);
  }

  /** A command that this hour does not type, and why. */
  skips(documented: string, why: string): void {
    this.#skipped.set(documented, why);
    this.#tell(`not typed: ${documented}  (${why})`);
  }

  /** Throws if a document has a command that was neither typed nor skipped for a reason, or the other way round. */
  assertComplete(): void {
    const documented = DOCUMENTS.flatMap(commandsIn);
    const missing = documented.filter((command) => !this.#typed.has(command) && !this.#skipped.has(command));
    const typed = [...this.#typed].join("\n");
    const subcommands = DOCUMENTS.flatMap(subcommandsIn).filter(
      (name) => !new RegExp(`holdfast (?:--store \\S+ )?${name}\\b`).test(typed),
    );
    const gone = [...this.#skipped.keys()].filter((command) => !documented.includes(command));
    if (missing.length + subcommands.length + gone.length === 0) return;
    throw new Error(
      [
        ...missing.map((command) => `not typed: ${command}`),
        ...subcommands.map((name) => `never used: holdfast ${name}`),
        ...gone.map((command) => `skipped, but in no document: ${command}`),
      ].join("\n"),
    );
  }
}
