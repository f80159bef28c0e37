import { editOf } from "@holdfast/server/internal/edits";
import type { ChatEvent } from "../host/host.ts";
import type { Line } from "../screen/lines/line.ts";
import { shortId } from "../short-id.ts";
import { type Paint, paintFor } from "../terminal/colour.ts";
import { jsonText } from "../terminal/json.ts";
import { plain, plainLine } from "../terminal/plain.ts";
import { wrapWords } from "../terminal/wrap-words.ts";
import { diffLines } from "../transcript/terminal-lines.ts";
import { callWords } from "../transcript/words.ts";
import { typedCommand } from "../typed-command.ts";

export interface Printer {
  event(event: ChatEvent): void;
  /** Called after the last event. `finish`: the command that finishes the turn, if it did not complete. */
  end(session: string, finish?: string): void;
}

/** Loads the layout of Markdown if the answer goes to a terminal. */
export async function printerFor({ json, quiet }: { readonly json?: true; readonly quiet?: true }): Promise<Printer> {
  if (json) return { event: (event) => void process.stdout.write(`${jsonText(event)}\n`), end: () => {} };
  const isTerminal = process.stdout.isTTY === true && process.env["TERM"] !== "dumb";
  const answers = isTerminal ? await markdownAnswers() : plainAnswers;
  return new TextPrinter(quiet === true, paintFor(process.stderr), answers);
}

/** One answer as it streams in. */
interface AnswerText {
  /** What can be written now. */
  add(text: string): string;
  /** The rest of it. */
  end(): string;
}

type MakeAnswer = () => AnswerText;

/** A file gets the answer unchanged. A terminal without a cursor gets it without escapes. */
const plainAnswers: MakeAnswer = () => {
  let isOpen = false;
  return {
    add(text) {
      isOpen = !text.endsWith("\n");
      return process.stdout.isTTY ? plain(text) : text;
    },
    end: () => (isOpen ? "\n" : ""),
  };
};

/** How many rows may wait for the end of their paragraph, list or table. */
const LIVE_ROWS_MAX = 8;

/** Blocks are written when they are complete, and long ones piece by piece. */
async function markdownAnswers(): Promise<MakeAnswer> {
  const { advanceStream, EMPTY_STREAM, finishStream } = await import("../screen/lines/markdown-stream.ts");
  const { ansiOf, lineText } = await import("../screen/lines/line.ts");
  const isPainted = paintFor(process.stdout)("bad", "x") !== "x";
  const columns = (): number => process.stdout.columns || 80;
  const textOf = (rows: readonly Line[]): string =>
    rows.map((row) => `${isPainted ? ansiOf(row, true) : lineText(row)}\n`).join("");
  return () => {
    let stream = EMPTY_STREAM;
    let text = "";
    return {
      add(more) {
        text += more;
        const step = advanceStream(stream, text, columns(), LIVE_ROWS_MAX);
        // Without what is processed: the cost of a step must not grow with the answer.
        text = text.slice(step.stream.taken);
        stream = { ...step.stream, taken: 0 };
        return textOf(step.finished);
      },
      end: () => textOf(finishStream(stream, text, columns())),
    };
  };
}

/** Streams the answer to standard output, and everything else to standard error, one line each. */
class TextPrinter implements Printer {
  readonly #isQuiet: boolean;
  readonly #paint: Paint;
  readonly #newAnswer: MakeAnswer;
  /** The answer that is streaming in. */
  #answer: AnswerText | null = null;
  /** The input of each call that is running. */
  readonly #inputs = new Map<string, unknown>();
  #isComplete = true;

  constructor(isQuiet: boolean, paint: Paint, newAnswer: MakeAnswer) {
    this.#isQuiet = isQuiet;
    this.#paint = paint;
    this.#newAnswer = newAnswer;
  }

  event(event: ChatEvent): void {
    switch (event.type) {
      case "text":
        if (event.text === "") break;
        this.#answer ??= this.#newAnswer();
        process.stdout.write(this.#answer.add(event.text));
        break;
      case "retry":
        this.#say("warning", `The model did not answer (${event.reason}). Retrying.`);
        break;
      case "tool.started":
        this.#inputs.set(event.call, event.input);
        this.#say("faint", `${event.name === "shell" ? "$" : "·"} ${callWords(event)}`);
        break;
      case "tool.ended":
        if (!event.failed) this.#showChange(event.name, this.#inputs.get(event.call));
        this.#inputs.delete(event.call);
        if (event.failed) this.#say("warning", `${event.name} failed: ${plainLine(event.output).slice(0, 200)}`);
        break;
      case "permission.asked":
        // The question comes after everything that the model has said.
        this.#close();
        break;
      case "notice":
        this.#say(event.level === "warning" ? "warning" : "faint", event.text, event.level === "warning");
        break;
      case "replaced":
        this.#say("faint", `The conversation was compacted to ${event.items} messages.`);
        break;
      case "turn.started":
        if (event.resumed)
          this.#say("faint", `Resuming the interrupted turn: ${plainLine(event.prompt).slice(0, 100)}`);
        break;
      case "turn.ended":
        this.#close();
        this.#isComplete = event.outcome === "completed";
        if (event.error) this.#say("bad", event.error.message, true);
        else if (event.outcome === "aborted")
          this.#say("warning", "Stopped. Everything produced so far is saved.", true);
        else if (event.outcome === "waiting") this.#say("warning", "Waiting for approval.", true);
        break;
      default:
        break;
    }
  }

  end(session: string, finish?: string): void {
    this.#close();
    const short = shortId(session);
    const command = finish ?? `run --resume ${short} --finish`;
    if (!this.#isComplete) this.#say("faint", `To finish the turn: ${typedCommand(command)}`);
    else if (process.stderr.isTTY) this.#say("faint", `session ${short}`);
  }

  /** What an edit changed, for a person who watches. A log gets one line for each call. */
  #showChange(name: string, input: unknown): void {
    if (this.#isQuiet || !process.stderr.isTTY) return;
    const edit = editOf({ name, input });
    if (!edit) return;
    this.#close();
    const layout = { paint: this.#paint, full: false, columns: process.stderr.columns };
    process.stderr.write([...diffLines(edit.rows, layout)].map((line) => `${line}\n`).join(""));
  }

  #close(): void {
    if (this.#answer) process.stdout.write(this.#answer.end());
    this.#answer = null;
  }

  #say(style: "faint" | "warning" | "bad", text: string, matters = false): void {
    if (this.#isQuiet && !matters) return;
    this.#close();
    const rows = wrapWords(plain(text), process.stderr.columns);
    process.stderr.write(rows.map((row) => `${this.#paint(style, row)}\n`).join(""));
  }
}
