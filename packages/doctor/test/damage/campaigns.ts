import type { ProblemKind } from "../../src/index.ts";
import { RECORD_DAMAGE } from "./claude-code-damage.ts";
import { CODEX_DAMAGE } from "./codex-damage.ts";
import { COPILOT_DAMAGE } from "./copilot-damage.ts";
import { DOCUMENT_DAMAGE, testDocument } from "./document-damage.ts";
import { GEMINI_DAMAGE } from "./gemini-damage.ts";
import { linesOf } from "./line-damage.ts";
import { FILE_DAMAGE, ROW_DAMAGE } from "./opencode-damage.ts";
import {
  bytesDamage,
  HEADER_DAMAGE,
  lineDamage,
  pick,
  type SessionDamage,
  TEXT_DAMAGE,
  WILD_DAMAGE,
} from "./session-damage.ts";

/** What a campaign needs to know of an agent. Add yours: `npm run doctor-lab -- --campaign --agent <name>`. */
export interface Campaign {
  readonly damages: readonly SessionDamage[];
  /**
   * What the program itself says to the model of a conversation with a hole, such as that a call was interrupted: it is
   * not taken for made up.
   */
  readonly ownWords?: RegExp;
  /** A text without what is another each time, such as the date of today. */
  plain?(text: string): string;
}

const CLAUDE_CODE: readonly SessionDamage[] = RECORD_DAMAGE.map(({ kind, apply }) =>
  bytesDamage({ name: `record: ${kind}`, named: [kind], isLossless: false }, (bytes, random) => {
    const lines = linesOf(bytes);
    const places = lines.map((_, at) => at).filter((at) => apply(lines, at, () => 0.5) !== null);
    return places.length === 0 ? null : apply(lines, pick(places, random), random);
  }),
);

/** Of documents in whose field `messages` the records are. */
const DOCUMENT: readonly SessionDamage[] = DOCUMENT_DAMAGE.map(({ name, named, harm }) => {
  const isLossless = !["torn", "a run of zero bytes", "half a character", "half of the first message"].includes(name);
  return bytesDamage(
    { name: `document: ${name}`, named, isLossless },
    (bytes, random) => harm(testDocument(bytes.toString("utf8"), "messages"), random)?.bytes ?? null,
  );
});

const recordGone = (name: string, named: readonly ProblemKind[], words: string, isLossless: boolean): SessionDamage =>
  lineDamage(
    { name: `record: ${name}`, named, isLossless },
    (line, at) => at > 0 && line.includes(words),
    (lines, at) => lines.splice(at, 1),
  );

const LOST = ["lost-record"] as const;
const DSH_DAMAGE: readonly SessionDamage[] = [
  recordGone("a prompt is gone", LOST, '"type":"user/message"', false),
  recordGone("an answer is gone", LOST, '"type":"assistant/message"', true),
  recordGone("a result is gone", LOST, '"type":"tool/result"', false),
  recordGone("a call is gone", LOST, '"type":"tool/call"', true),
  recordGone("any record is gone", LOST, "{", false),
  recordGone("the beginning of a turn is gone", LOST, '"type":"turn/start"', true),
  lineDamage(
    { name: "record: a call with null input", named: ["bad-tool-input"], isLossless: true },
    (line) => line.includes('"type":"assistant/message"') && line.includes('"arguments":"'),
    (lines, at) => lines.splice(at, 1, lines[at]!.replace(/"arguments":"(?:[^"\\]|\\.)*"/, '"arguments":null')),
  ),
];

/** By the name of the reader. */
export const CAMPAIGNS: Readonly<Record<string, Campaign>> = {
  "claude-code": { damages: [...TEXT_DAMAGE, ...CLAUDE_CODE, ...WILD_DAMAGE] },
  cline: { damages: DOCUMENT },
  codex: {
    damages: [...TEXT_DAMAGE, ...HEADER_DAMAGE, ...CODEX_DAMAGE, ...WILD_DAMAGE],
    // A result that comes back from an event has its output, and not what stood around it.
    ownWords: /^aborted|^Process exited with code/,
  },
  copilot: {
    damages: [...TEXT_DAMAGE, ...HEADER_DAMAGE, ...COPILOT_DAMAGE, ...WILD_DAMAGE],
    ownWords: /interrupted/i,
    plain: (text) => text.replace(/<current_datetime>[^<]*<\/current_datetime>\s*/, ""),
  },
  dsh: {
    damages: [...TEXT_DAMAGE, ...HEADER_DAMAGE, ...DSH_DAMAGE, ...WILD_DAMAGE],
    ownWords: /^The tool call was interrupted/,
  },
  gemini: {
    damages: [...TEXT_DAMAGE, ...HEADER_DAMAGE, ...GEMINI_DAMAGE, ...WILD_DAMAGE],
    // It shows each result once more after each resume.
    ownWords: /\{\\?"(?:output|error|functionResponse)\\?":/,
  },
  opencode: {
    damages: [...ROW_DAMAGE, ...FILE_DAMAGE, ...WILD_DAMAGE],
    ownWords: /^\[Tool execution was interrupted\]/,
  },
  pi: { damages: [...TEXT_DAMAGE, ...HEADER_DAMAGE, ...WILD_DAMAGE] },
};
