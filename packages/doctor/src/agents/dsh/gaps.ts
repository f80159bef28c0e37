import { type Fields, fieldsOf, listIn } from "../../contract/shapes.ts";
import { madeUuid } from "../../mend/entries.ts";
import { LOST_RECORD, LOST_RESULT } from "../../mend/words.ts";
import { isInput, type Line, type Log, type Pieces, resultOf } from "./log.ts";

const LOST_CALL = "[The call of this result was lost. holdfast doctor kept the result as text.]";

/**
 * Fills the gaps between the numbers: with the prompts, answers and results that other events repeat, a note for a
 * result that is gone, and with events that DeepSeek Harness ignores for what nobody knows.
 */
export function fillGaps(
  lines: readonly Line[],
  log: Log,
  { session, valueAt, lost }: { session: string; valueAt: (line: Line) => Fields; lost: string[] },
): Line[] {
  return new GapFiller(lines, log, session, valueAt, lost).fill();
}

class GapFiller {
  readonly #lines: readonly Line[];
  readonly #log: Log;
  readonly #session: string;
  readonly #valueAt: (line: Line) => Fields;
  readonly #lost: string[];
  readonly #out: Line[] = [];
  /** Calls with a message, and those with a result: in the whole log. */
  readonly #called: Set<string>;
  readonly #answered: Set<string>;
  /** Calls that came, and whose results have not. */
  readonly #open = new Map<string, { readonly turn: unknown; readonly step: unknown }>();
  /** Prompts that the inbox took, and that no message repeats. */
  #prompts: Fields[] = [];
  #next = 0;

  constructor(lines: readonly Line[], log: Log, session: string, valueAt: (line: Line) => Fields, lost: string[]) {
    this.#valueAt = valueAt;
    this.#lines = lines;
    this.#log = log;
    this.#session = session;
    this.#lost = lost;
    const callsOf = (type: string): Set<string> =>
      new Set(lines.flatMap((line) => (line.type === type ? line.calls : [])));
    this.#called = callsOf("assistant/message");
    this.#answered = callsOf("tool/result");
  }

  fill(): Line[] {
    const taken = new Map([...this.#log.prompts.values()].map(({ seq, message }) => [seq, message]));
    for (const [index, line] of this.#lines.entries()) {
      if (line.seq > this.#next) this.#gap(line.seq, line, this.#lines.slice(index, index + 32));
      this.#out.push(this.#isOrphan(line) ? asText(line, this.#valueAt(line)) : line);
      this.#next = line.seq + line.count;
      const prompt = taken.get(line.seq);
      if (prompt) this.#prompts.push(prompt);
      this.#follow(line);
    }
    this.#end();
    return this.#out;
  }

  /** The message of the last answer was torn off: its pieces that ended are there. */
  #end(): void {
    const last = this.#out.at(-1);
    const pieces = last && this.#log.pieces.get(last.step);
    if (!last || !pieces || this.#log.isUnharmed || pieces.last !== this.#next - 1 || pieces.blocks.size === 0) return;
    this.#answer(blocksOf({ ...pieces, texts: new Map() }), pieces, last);
  }

  #follow({ type, calls, step }: Line): void {
    if (type === "assistant/message" || type.includes("chunk")) this.#prompts = [];
    const [turn, number] = step.split(".").map(Number);
    if (type === "assistant/message") {
      this.#open.clear();
      for (const call of calls) this.#open.set(call, { turn, step: number });
    } else if (type === "tool/result") for (const call of calls) this.#open.delete(call);
  }

  #gap(to: number, before: Line, ahead: readonly Line[]): void {
    for (const message of this.#prompts.splice(0))
      if (this.#next < to) this.#make("user/message", message, before, "append");
    const last = this.#out.at(-1);
    const pieces = last ? this.#log.pieces.get(last.step) : undefined;
    if (pieces && pieces.last === this.#next - 1 && this.#next < to) this.#answer(blocksOf(pieces), pieces, before);
    else {
      // The calls that follow, and that no message holds.
      const calls = ahead.filter(
        ({ type, step, calls: [id] }) => type === "tool/call" && step === before.step && !this.#called.has(id ?? ""),
      );
      const blocks = calls.flatMap(({ calls: [id] }) => {
        const { name, arguments: input } = this.#log.calls.get(id!) ?? {};
        return isInput(input) ? [{ type: "tool-call", id, name, arguments: input }] : [];
      });
      const [turn, number] = before.step.split(".").map(Number);
      if (before.type === "tool/call" && blocks.length > 0 && this.#next < to)
        this.#answer(blocks, { turn, number, step: before.step }, before);
    }
    for (const [call, { turn, step }] of this.#open) {
      if (this.#answered.has(call) || this.#next >= to) continue;
      const message = resultOf(call, LOST_RESULT, this.#next);
      this.#make("tool/result", { turn, step, message }, before, "append");
      this.#open.delete(call);
      this.#lost.push(`The result of the call ${call} is lost.`);
    }
    if (this.#next < to) this.#lost.push(`The events ${this.#next} to ${to - 1} are lost.`);
    while (this.#next < to) this.#make("holdfast-doctor/lost", { note: LOST_RECORD }, before, null);
  }

  #answer(
    content: readonly Fields[],
    { turn, number, step }: Pick<Pieces, "turn" | "number" | "step">,
    before: Line,
  ): void {
    const source = { kind: "model", provider: "unknown", model: "unknown", ...this.#log.source };
    const message = { role: "assistant", content, source, id: madeUuid(this.#session, step) };
    this.#make("assistant/message", { turn, step: number, message }, before, "append");
    const calls = content.flatMap(({ type, id }) => (type === "tool-call" ? [String(id)] : []));
    for (const call of calls) this.#called.add(call);
    this.#follow({ ...this.#out.at(-1)!, calls });
  }

  #make(type: string, data: Fields, { time, step }: Line, surfaceOp: "append" | null): void {
    const seq = this.#next++;
    const more = surfaceOp === null ? { ignorable: true } : { surfaceOp };
    const isBack = type === "user/message" || type === "assistant/message";
    this.#out.push({
      ...{ seq, count: 1, type, time, place: null, value: { type, seq, time, data, ...more } },
      ...{ isMade: !isBack, step, calls: [] },
    });
  }

  #isOrphan({ type, calls }: Line): boolean {
    return type === "tool/result" && calls.every((call) => !this.#called.has(call));
  }
}

/** A result without its call is refused by every provider. */
function asText(line: Line, value: Fields): Line {
  const { seq, time } = line;
  const blocks = listIn(fieldsOf(fieldsOf(value["data"])["message"])["content"]);
  const texts = blocks.flatMap((block) => listIn(fieldsOf(block)["content"]).map((each) => fieldsOf(each)["text"]));
  const content = [{ type: "text", text: [LOST_CALL, ...texts].join("\n") }];
  const data = { content, source: { kind: "user" }, role: "user", id: `holdfast-doctor-${seq}` };
  return {
    ...line,
    type: "user/message",
    place: null,
    isMade: true,
    calls: [],
    value: { type: "user/message", seq, time, data, surfaceOp: "append" },
  };
}

/** The blocks of an answer, as its pieces have them. */
function blocksOf({ blocks, texts }: Pieces): Fields[] {
  const indexes = [...new Set([...blocks.keys(), ...texts.keys()])].toSorted((a, b) => a - b);
  return indexes.flatMap((index) => {
    const block = blocks.get(index);
    if (block) return [block];
    const { type, text, id, name } = texts.get(index)!;
    if (type !== "tool-call") return [{ type, text }];
    return id !== undefined && isInput(text) ? [{ type, id, name: name ?? "unknown", arguments: text }] : [];
  });
}
