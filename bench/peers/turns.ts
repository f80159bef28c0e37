import { makeConversation, PER_TURN } from "../messages.ts";

/** One message without the form of any SDK. */
export type Piece =
  | { readonly kind: "prompt"; readonly text: string }
  | { readonly kind: "answer"; readonly text: string }
  | {
      readonly kind: "call";
      readonly text: string;
      readonly id: string;
      readonly input: Readonly<Record<string, string>>;
    }
  | { readonly kind: "result"; readonly text: string; readonly id: string };

/** A prompt, four calls with their results, an answer. */
export interface TurnText {
  readonly index: number;
  readonly pieces: readonly Piece[];
  /** Size of its messages as JSON in Anthropic's form: the payload that bytes written are counted against. */
  readonly bytes: number;
}

export const TOOL = "edit";
export { PER_TURN };

const TURNS = 300;

/** The same turns for every contender, without end: texts repeat after 300 turns, the ids of calls never. */
export class Turns {
  readonly #turns: readonly { readonly messages: readonly unknown[]; readonly bytes: number }[];

  constructor() {
    const entries = makeConversation(TURNS * PER_TURN, "anthropic");
    this.#turns = Array.from({ length: TURNS }, (_, i) => {
      const own = entries.slice(i * PER_TURN, (i + 1) * PER_TURN);
      return { messages: own.map(({ message }) => message), bytes: own.reduce((sum, { bytes }) => sum + bytes, 0) };
    });
  }

  at(index: number): TurnText {
    const { messages, bytes } = this.#turns[index % TURNS]!;
    return { index, bytes, pieces: messages.map((message, i) => pieceOf(message, `call_${index}_${(i + 1) >> 1}`)) };
  }

  /** The turns of a session of `messages` messages. */
  *upTo(messages: number): Generator<TurnText> {
    for (let index = 0; index < messages / PER_TURN; index++) yield this.at(index);
  }
}

interface Block {
  readonly type: string;
  readonly text?: string;
  readonly input?: Readonly<Record<string, string>>;
  readonly content?: string;
}

function pieceOf(message: unknown, id: string): Piece {
  const { role, content } = message as { readonly role: string; readonly content: string | readonly Block[] };
  if (typeof content === "string") return { kind: "prompt", text: content };
  const [first, second] = content;
  if (role === "user") return { kind: "result", text: first!.content!, id };
  if (second) return { kind: "call", text: first!.text!, id, input: second.input! };
  return { kind: "answer", text: first!.text! };
}

/** Anthropic's form, for the stores that keep any JSON. */
export function anthropicForm(piece: Piece): unknown {
  if (piece.kind === "prompt") return { role: "user", content: piece.text };
  const text = { type: "text", text: piece.text };
  if (piece.kind === "answer") return { role: "assistant", content: [text] };
  if (piece.kind === "result")
    return { role: "user", content: [{ type: "tool_result", tool_use_id: piece.id, content: piece.text }] };
  return { role: "assistant", content: [text, { type: "tool_use", id: piece.id, name: TOOL, input: piece.input }] };
}
