import { type Outcome, STATES } from "./cell.ts";
import { LAYOUTS } from "./seat.ts";
import { isEnded } from "./shown.ts";

const LAYOUT_WORDS = { alone: "alone", wrapped: "wrapped", direct: "wrapped, `--direct`" } as const;

/** One row for each agent and layout; a cell says what `session/load` gave back, after each kill. */
export function tableOf(outcomes: readonly Outcome[]): string {
  const agents = [...new Set(outcomes.map(({ cell }) => cell.agent))];
  const rows = agents.flatMap(({ program }) =>
    LAYOUTS.flatMap((layout) =>
      [false, true].flatMap((isLater) => {
        const own = outcomes.filter(
          ({ cell }) =>
            cell.agent.program === program && cell.layout === layout && (cell.pauseMs !== undefined) === isLater,
        );
        if (own.length === 0) return [];
        const cells = STATES.map((state) => cellWords(own.filter(({ cell }) => cell.state === state)));
        const name = `${program.name} ${program.version}, ${LAYOUT_WORDS[layout]}${isLater ? ", a minute later" : ""}`;
        return [`| ${[name, ...cells].join(" | ")} |`];
      }),
    ),
  );
  return [`| agent | ${STATES.join(" | ")} |`, `|---|${STATES.map(() => "---|").join("")}`, ...rows].join("\n");
}

/** What is the same after each kill is said once. */
function cellWords(outcomes: readonly Outcome[]): string {
  const words = new Map<string, string[]>();
  for (const outcome of outcomes) {
    const said = lossesOf(outcome).join(", ") || "everything";
    words.set(said, [...(words.get(said) ?? []), outcome.cell.kill]);
  }
  if (words.size <= 1) return [...words.keys()][0] ?? "not run";
  return [...words].map(([said, kills]) => `${kills.join(", ")}: ${said}`).join("; ");
}

/** What a person misses who loads the session, and what stays behind in the machine. */
function lossesOf({ prompts, seen, loaded, late, left }: Outcome): string[] {
  const behind = left.length === 0 ? [] : [`**${count(left.length, "process", "es")} left**`];
  if (typeof loaded === "string")
    return [loaded === "it cannot load" ? "nothing: it cannot load" : `nothing: "${reasonIn(loaded)}"`, ...behind];
  const losses: string[] = [];
  const missing = prompts.filter((prompt) => !loaded.prompts.some((text) => text.includes(prompt))).length;
  if (missing > 0) losses.push(`${missing} of ${prompts.length} prompts missing`);
  const made = loaded.prompts.filter(
    (text) => !text.startsWith("[The turn before") && !prompts.some((one) => text.includes(one)),
  );
  if (made.length > 0) losses.push(`${count(made.length, "message")} shown that the user did not write`);
  if (!loaded.text.includes(seen.text)) losses.push(`${loaded.text.length} of ${seen.text.length} characters of text`);
  if (loaded.tools.length < seen.tools.length)
    losses.push(`${seen.tools.length - loaded.tools.length} of ${seen.tools.length} calls missing`);
  const open = loaded.tools.filter(({ status }) => !isEnded(status)).length;
  if (open > 0) losses.push(`${count(open, "call")} shown as running for ever`);
  if (late > 0) losses.push(`${count(late, "update")} after the answer`);
  return [...losses, ...behind];
}

function reasonIn(error: string): string {
  return error
    .replace(/^\w*Error: /, "")
    .split("\n")[0]!
    .replaceAll("|", "\\|")
    .slice(0, 80);
}

function count(number: number, word: string, ending = "s"): string {
  return `${number} ${word}${number === 1 ? "" : ending}`;
}
