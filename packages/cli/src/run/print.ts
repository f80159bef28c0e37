import type { ChatEvent } from "../host/host.ts";
import { type Paint, paintFor } from "../terminal/colour.ts";
import { jsonText } from "../terminal/json.ts";
import { plain, plainLine } from "../terminal/plain.ts";
import { callWords } from "../transcript/words.ts";

export interface Printer {
  event(event: ChatEvent): void;
  /** Called after the last event. */
  end(session: string): void;
}

export function printerFor({ json, quiet }: { readonly json?: true; readonly quiet?: true }): Printer {
  if (json) return { event: (event) => void process.stdout.write(`${jsonText(event)}\n`), end: () => {} };
  return new TextPrinter(quiet === true, paintFor(process.stderr));
}

/** Streams the answer to standard output, and everything else to standard error, one line each. */
class TextPrinter implements Printer {
  readonly #isQuiet: boolean;
  readonly #paint: Paint;
  readonly #isTerminal = process.stdout.isTTY === true;
  /** The answer is in the middle of a line. */
  #isOpen = false;
  #hasAnswered = false;
  #isComplete = true;

  constructor(isQuiet: boolean, paint: Paint) {
    this.#isQuiet = isQuiet;
    this.#paint = paint;
  }

  event(event: ChatEvent): void {
    switch (event.type) {
      case "text":
        this.#answer(event.text);
        break;
      case "retry":
        this.#say("warning", `The model did not answer (${event.reason}). Retrying.`);
        break;
      case "tool.started":
        this.#say("faint", `${event.name === "shell" ? "$" : "·"} ${callWords(event)}`);
        break;
      case "tool.ended":
        if (event.failed) this.#say("warning", `${event.name} failed: ${plainLine(event.output).slice(0, 200)}`);
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

  end(session: string): void {
    this.#close();
    if (!this.#isComplete) this.#say("faint", `To finish the turn: holdfast run --resume ${session} --finish`);
    else if (process.stderr.isTTY) this.#say("faint", `session ${session}`);
  }

  #answer(text: string): void {
    if (text === "") return;
    // A model's text may contain terminal escapes; a file gets it unchanged.
    process.stdout.write(this.#isTerminal ? plain(text) : text);
    this.#isOpen = !text.endsWith("\n");
    this.#hasAnswered = true;
  }

  #close(): void {
    if (this.#isOpen && this.#hasAnswered) process.stdout.write("\n");
    this.#isOpen = false;
  }

  #say(style: "faint" | "warning" | "bad", text: string, matters = false): void {
    if (this.#isQuiet && !matters) return;
    this.#close();
    process.stderr.write(`${this.#paint(style, plain(text))}\n`);
  }
}
