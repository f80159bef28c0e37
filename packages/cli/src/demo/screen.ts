import { styleText } from "node:util";
import type { ChatEvent } from "../host/host.ts";
import { plain, plainLine } from "../terminal/plain.ts";
import { fit } from "../terminal/width.ts";
import { callWords } from "../transcript/words.ts";
import type { Kill, Receipt } from "./receipt.ts";
import { receiptLines, streamedWords } from "./receipt-words.ts";
import type { RemovedRecord } from "./remove-record.ts";
import type { Task } from "./task.ts";
import { WordWrap } from "./word-wrap.ts";

type Style = Parameters<typeof styleText>[0];

const WIDTH = 80;
/** Lines of an answer to show. */
const LINES_MAX = 12;

export interface LifeShown {
  readonly number: number;
  readonly pid: number;
  readonly resumed: boolean;
  readonly ms: number;
}

/** What the demo shows while it runs. */
export interface Screen {
  begin(task: Task, options: { readonly kills: number; readonly seed: number }): void;
  life(life: LifeShown): void;
  event(event: ChatEvent): void;
  kill(pid: number, where: string): void;
  found(kill: Kill): void;
  lost(taken: RemovedRecord): void;
  /** Only the undisturbed agent is still working. */
  wait(): void;
  receipt(receipt: Receipt): void;
  kept(path: string): void;
}

/** For `--json`: only the receipt. */
export function silentScreen(stream: NodeJS.WriteStream): Screen {
  const nothing = (): void => {};
  return {
    begin: nothing,
    life: nothing,
    event: nothing,
    kill: nothing,
    found: nothing,
    lost: nothing,
    wait: nothing,
    receipt: (receipt) => void stream.write(`${JSON.stringify(receipt)}\n`),
    kept: (path) => void process.stderr.write(`kept: ${path}\n`),
  };
}

/** Shows words as they arrive on a terminal, and whole lines elsewhere. */
export class TextScreen implements Screen {
  readonly #stream: NodeJS.WriteStream;
  readonly #flow: WordWrap;
  readonly #width: number;
  readonly #command: string;
  /** Tools started in a row, shown together. */
  #started: { readonly name: string; readonly words: string }[] = [];
  #ended = 0;
  /** Lines of the answer being streamed. */
  #lines = 0;

  constructor(stream: NodeJS.WriteStream, env: Readonly<Record<string, string | undefined>>) {
    this.#stream = stream;
    // A clone has no installed command yet.
    this.#command = env["npm_lifecycle_event"] === "start" ? "npm start --" : "holdfast demo";
    this.#width = stream.isTTY ? Math.min(Math.max(stream.columns ?? WIDTH, 40), WIDTH) : WIDTH;
    this.#flow = new WordWrap((text) => void stream.write(text), this.#width - 1, stream.isTTY === true);
  }

  begin({ prompt }: Task, { kills, seed }: { readonly kills: number; readonly seed: number }): void {
    this.#line(
      this.#paint("bold", "holdfast demo") +
        this.#paint("dim", `   ${kills === 1 ? "1 kill" : `${kills} kills`}, seed ${seed}`),
    );
    this.#words(
      "",
      "An agent works on a task in a temporary folder. It is killed with kill -9 in mid-turn, and a new process resumes the turn. Processes, disk and kills are real; the model is the built-in one and needs no key.",
    );
    this.#line();
    for (const [index, line] of prompt.split("\n").entries()) {
      this.#line(`  ${this.#paint("cyan", index === 0 ? "task " : "     ")} ${fit(line, this.#width - 9)}`);
    }
  }

  life({ number, pid, resumed, ms }: LifeShown): void {
    this.#line();
    const how = resumed ? "resumes the turn" : "starts";
    this.#line(
      `${this.#paint("bold", `life ${number}`)}  process ${pid} ${how} ${this.#paint("dim", `(ready after ${(ms / 1000).toFixed(1)} s)`)}`,
    );
  }

  event(event: ChatEvent): void {
    if (event.type === "item" || event.type === "usage" || event.type === "session") return;
    if (event.type !== "text") this.#tellRest();
    if (event.type !== "tool.started") this.#tellStarted();
    if (event.type !== "tool.ended") this.#tellEnded();
    switch (event.type) {
      case "text":
        this.#say(event.text);
        return;
      case "reasoning":
        this.#flow.say("think", plain(event.text), (text) => this.#paint("dim", text), "  ");
        return;
      case "tool.started":
        this.#started.push({ name: event.name, words: callWords(event, 60) });
        return;
      case "tool.output":
        for (const line of plain(event.text).trimEnd().split("\n"))
          this.#line(`    ${this.#paint("dim", fit(`| ${line}`, this.#width - 5))}`);
        return;
      case "tool.ended":
        this.#ended += 1;
        if (event.failed) this.#words("yellow", `${event.name} failed: ${plainLine(event.output).slice(0, 120)}`);
        return;
      case "compacting":
        this.#line(`  ${this.#paint("magenta", "the context window is nearly full: compacting the conversation")}`);
        return;
      case "replaced":
        this.#line(`  ${this.#paint("magenta", `the conversation continues with ${event.items} messages`)}`);
        return;
      case "notice":
        this.#words(event.level === "warning" ? "red" : "yellow", plainLine(event.text));
        return;
      case "turn.ended":
        this.#line(`  ${this.#paint("green", `turn ${event.outcome}`)}`);
        return;
      default:
        return;
    }
  }

  kill(pid: number, where: string): void {
    this.#tellRest();
    this.#tellStarted();
    this.#tellEnded();
    this.#flow.close();
    const words = fit(`  KILL -9   process ${pid}, ${where}`, this.#width - 1);
    const bar = (text: string): string => this.#paint(["bgRed", "whiteBright", "bold"], text.padEnd(this.#width - 1));
    if (!this.#stream.isTTY) this.#line(words);
    else for (const line of ["", words, ""]) this.#line(bar(line));
  }

  found(kill: Kill): void {
    const { calls, answered, compaction, tornBytes } = kill;
    const row = (style: Style, text: string): void => this.#words(style, text, "journal: ");
    for (const { what, words, effect, pid } of calls) {
      row(
        effect === "possible" ? "yellow" : "green",
        `${what}: ${words}${pid === undefined ? "" : `; its process ${pid} was not killed`}`,
      );
    }
    if (answered > 0) row("green", `${answered} parallel calls had their results`);
    if (compaction === "old") row("green", "the compaction did not take effect: the old conversation is intact");
    if (compaction === "new") row("green", "the compaction took effect: the new conversation is intact");
    const streamed = streamedWords(kill);
    if (streamed !== null) row("green", streamed);
    if (tornBytes > 0) row("dim", `${tornBytes} bytes of an unacknowledged record`);
    if (calls.length === 0 && answered === 0 && streamed === null && !compaction) row("green", "nothing was in flight");
  }

  lost({ seq, name }: RemovedRecord): void {
    const words = `--lose-one: record ${seq}, the acknowledged result of "${name}", is now removed from the file, as a faulty store would.`;
    this.#words("red", words);
  }

  wait(): void {
    this.#flow.close();
  }

  receipt(receipt: Receipt): void {
    this.#line();
    for (const { text, mark } of receiptLines(receipt)) {
      if (mark === null) this.#words("bold", text);
      else {
        const style = mark === "yes" ? "green" : mark === "NO" ? "red" : "yellow";
        this.#words(style, text, `${mark === "yes" ? "yes" : mark === "NO" ? "NO " : "   "}  `, true);
      }
    }
    const isKept = receipt.verdict === "kept";
    this.#line();
    this.#words(
      isKept ? ["green", "bold"] : ["red", "bold"],
      isKept
        ? `${receipt.kills.length === 1 ? "1 kill" : `${receipt.kills.length} kills`}, one turn, nothing acknowledged lost.`
        : `THE RECEIPT DOES NOT BALANCE. ${receipt.taken ? "This is expected: --lose-one removed a record." : "This is a bug: please report it with everything above."}`,
      "",
    );
    this.#words(
      "dim",
      `Repeat with: ${this.#command} --kills ${receipt.kills.length + receipt.missed.length} --seed ${receipt.seed}${receipt.taken ? " --lose-one" : ""}`,
      "",
    );
  }

  kept(path: string): void {
    this.#words("dim", `Kept: ${path}. Inspect it with: holdfast --store ${path}/killed/store ls --all`, "");
  }

  #say(text: string): void {
    this.#lines += text.split("\n").length - 1;
    if (this.#lines <= LINES_MAX) this.#flow.say("say", plain(text), (one) => one, "  ");
  }

  /** Reports how many lines of a long answer were left out. */
  #tellRest(): void {
    const rest = this.#lines - LINES_MAX;
    this.#lines = 0;
    if (rest > 0) this.#line(`  ${this.#paint("dim", `… and ${rest} more lines`)}`);
  }

  #tellStarted(): void {
    const started = this.#started;
    if (started.length === 0) return;
    this.#started = [];
    const [first] = started;
    const isOneKind = started.every(({ name }) => name === first!.name);
    const rest = (words: string): string => (isOneKind ? words.slice(first!.name.length).replace(/^:? /, "") : words);
    const names = started.map(({ words }) => rest(words)).join(", ");
    const text = isOneKind ? `${first!.name} ${names}` : names;
    const many = started.length > 1 ? this.#paint("dim", ` (${started.length} at once)`) : "";
    const room = this.#width - 5 - (started.length > 1 ? 12 : 0);
    this.#line(`  ${this.#paint("cyan", `> ${fit(text, room)}`)}${many}`);
  }

  #tellEnded(): void {
    if (this.#ended === 0) return;
    const words = this.#ended === 1 ? "result recorded" : `${this.#ended} results recorded`;
    this.#ended = 0;
    this.#line(`    ${this.#paint("dim", words)}`);
  }

  /** A wrapped paragraph. */
  #words(style: Style | "", text: string, label = "", labelOnly = false): void {
    this.#flow.close();
    const paint = style === "" ? (one: string) => one : (one: string) => this.#paint(style, one);
    const indent = " ".repeat(label.length + 2);
    let isFirst = true;
    const flow = new WordWrap((one) => void this.#stream.write(one), this.#width - 1, false);
    const first = label === "" ? "" : labelOnly ? paint(label) : this.#paint("dim", label);
    flow.say(
      "",
      text,
      labelOnly ? (one) => one : paint,
      (): string => {
        const before = isFirst ? `  ${first}` : indent;
        isFirst = false;
        return before;
      },
      indent.length,
    );
    flow.close();
  }

  #line(text = ""): void {
    this.#flow.close();
    this.#stream.write(`${text}\n`);
  }

  #paint(style: Style, text: string): string {
    return styleText(style, text, { stream: this.#stream });
  }
}
