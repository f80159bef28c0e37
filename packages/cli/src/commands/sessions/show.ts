import type { Command } from "commander";
import type { Account, Reading } from "holdfast";
import { shortId } from "../../short-id.ts";
import { accountElsewhere } from "../../store/account.ts";
import { damageLines, healthOf } from "../../store/damage.ts";
import { withStore } from "../../store/open.ts";
import { listedTitle, resolveId } from "../../store/session-id.ts";
import { type Paint, paintFor, type Style } from "../../terminal/colour.ts";
import { jsonText } from "../../terminal/json.ts";
import { page, pagerCommand } from "../../terminal/pager.ts";
import { plainLine } from "../../terminal/plain.ts";
import { wrapWords } from "../../terminal/wrap-words.ts";
import { accountLines, heldWords } from "../../transcript/account-lines.ts";
import type { Item } from "../../transcript/item.ts";
import { diffLines, type Layout, transcriptLines } from "../../transcript/terminal-lines.ts";
import { titleOf } from "../../transcript/title.ts";

interface Options {
  readonly full?: true;
  /** False with --no-pager. */
  readonly pager: boolean;
  readonly json?: true;
}

export function register(program: Command): void {
  program
    .command("show")
    .argument("<id>", "session id, its first or last characters, or latest")
    .summary("print a readable transcript")
    .description(
      "Prints a conversation as a readable transcript and, if it was interrupted, what was in flight. Long outputs and reasoning are shortened. On a terminal, Markdown is laid out, changes to files are in colour, and a long transcript opens in your pager. Read-only: the session may be in use.",
    )
    .option("--full", "print everything, including the input of each call")
    .option("--no-pager", "print directly, even if it is longer than the screen")
    .option(
      "--json",
      "print one JSON object: attributes, items, account, interruption, queue, usage (with sub-agents; ownUsage without), damage",
    )
    .addHelpText(
      "after",
      "\nExamples:\n  holdfast show latest\n  holdfast show 5f2a91c0 --json | jq '.items[].text'\n\nHOLDFAST_PAGER or PAGER names the pager (default: less).",
    )
    .action(async (given: string, { full, json, pager }: Options, command: Command) => {
      const shown = await withStore(command.optsWithGlobals(), async (store, config): Promise<ShownSession | null> => {
        const id = await resolveId(store, given);
        const reading = await store.read(id);
        const { itemsOf } = await import("../../transcript/items.ts");
        const { childrenOf } = await import("../../store/children.ts");
        const { nullIfUnreadable, sumUsage, usageBelow, usageOf } = await import("../../store/usage.ts");
        // The list may fail because of another session; show this one anyway.
        const children = await nullIfUnreadable(childrenOf(store, reading.id));
        const items = itemsOf(reading, children ? { children } : {});
        const { factsElsewhere } = await import("../../evidence/facts-elsewhere.ts");
        const account = accountElsewhere(reading, await factsElsewhere(store.url, reading));
        const usage = sumUsage([
          usageOf(reading),
          ...((await nullIfUnreadable(usageBelow(store, id)))?.values() ?? []),
        ]);
        if (json) {
          process.stdout.write(
            `${jsonText({ ...aboutOf(reading, account), usage, ownUsage: usageOf(reading), items })}\n`,
          );
          return null;
        }
        const title = reading.attributes.title || ((await nullIfUnreadable(listedTitle(store, id))) ?? "");
        const { tokenWords } = await import("../../export/document.ts");
        return { reading, account, items, title, tokens: tokenWords(usage), pager: config.pager };
      });
      // The store is closed while a pager runs.
      if (shown) await print(shown, full === true, pager);
    });
}

interface ShownSession {
  readonly reading: Reading<unknown>;
  readonly account: Account;
  readonly items: readonly Item[];
  readonly title: string;
  readonly tokens: string;
  readonly pager: string | undefined;
}

async function print(shown: ShownSession, full: boolean, usesPager: boolean): Promise<void> {
  const { stdout, env } = process;
  const isTerminal = stdout.isTTY === true && env["TERM"] !== "dumb";
  const paint = paintFor(stdout);
  const markdown = isTerminal ? await markdownFor(paint) : null;
  const layout: Layout = { paint, full, columns: stdout.isTTY ? stdout.columns || 80 : undefined, markdown };
  const command = isTerminal && usesPager ? pagerCommand(shown.pager, env) : null;
  await page(() => linesOf(shown, layout), { command, stdout, env });
}

/** Loaded where it is needed: a pipe gets the text as it is. */
async function markdownFor(paint: Paint): Promise<Layout["markdown"]> {
  const { markdownLines } = await import("../../screen/lines/markdown.ts");
  const { ansiOf, lineText } = await import("../../screen/lines/line.ts");
  const isPainted = paint("bad", "x") !== "x";
  return (text, columns) =>
    markdownLines(text, columns).map((line) => (isPainted ? ansiOf(line, true) : lineText(line)));
}

function* linesOf(
  { reading, account, items, title, tokens }: ShownSession,
  layout: Layout,
): Generator<string, void, undefined> {
  const { id, attributes, recovery } = reading;
  const held = heldWords(account);
  const { paint, columns, full } = layout;
  const said = function* (style: Style, text: string, hang = 0): Generator<string, void, undefined> {
    for (const row of wrapWords(text, columns, hang)) yield paint(style, row);
  };
  yield* said("heading", titleOf(title, items) || "(no prompt yet)");
  yield* said("faint", `session ${full ? id : shortId(id)}`);
  if (attributes.cwd !== undefined) yield* said("faint", `folder  ${plainLine(attributes.cwd)}`, 8);
  if (tokens) yield* said("faint", `tokens  ${tokens}`, 8);
  if (attributes.parent) yield* said("faint", `sub-agent of session ${shortId(plainLine(attributes.parent.session))}`);
  if (attributes.forkedFrom)
    yield* said("faint", `forked from session ${shortId(plainLine(attributes.forkedFrom.session))}`);
  if (held !== null) yield* said("faint", plainLine(held));
  if (healthOf(recovery) === "corrupt") {
    yield* said("bad", "This session is damaged. The readable part is below. Unreadable:");
    for (const line of damageLines(recovery, false)) yield* said("bad", `  ${line}`);
  }
  yield* transcriptLines(items, layout);
  const lines = accountLines(account);
  if (lines.length > 0) yield "";
  for (const line of lines) yield* said("warning", line, 2);
  for (const { path, diff = [] } of account.calls.flatMap(({ changes }) => changes?.files ?? [])) {
    if (diff.length === 0) continue;
    yield* said("faint", `  ${plainLine(path)}, since the call began:`, 4);
    yield* diffLines(diff, layout);
  }
}

function aboutOf(reading: Reading<unknown>, account: Account): object {
  const { id, attributes, interruption, queue, recovery, holder } = reading;
  return { id, ...attributes, account, holder, interruption, queue, health: healthOf(recovery), recovery };
}
