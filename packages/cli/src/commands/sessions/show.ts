import type { Command } from "commander";
import type { Reading } from "holdfast";
import { damageLines, healthOf } from "../../store/damage.ts";
import { withStore } from "../../store/open.ts";
import { listedTitle, resolveId } from "../../store/session-id.ts";
import { paintFor } from "../../terminal/colour.ts";
import { jsonText } from "../../terminal/json.ts";
import { plainLine } from "../../terminal/plain.ts";
import { interruptionLines } from "../../transcript/interruption-lines.ts";
import { transcriptLines } from "../../transcript/terminal-lines.ts";
import { titleOf } from "../../transcript/title.ts";

interface Options {
  readonly full?: true;
  readonly json?: true;
}

export function register(program: Command): void {
  program
    .command("show")
    .argument("<id>", "session id, its first or last characters, or latest")
    .summary("print a readable transcript")
    .description(
      "Prints a conversation as a readable transcript and, if it was interrupted, what was in flight. Long outputs and reasoning are shortened. Read-only: the session may be in use.",
    )
    .option("--full", "print everything, including the input of each call")
    .option(
      "--json",
      "print one JSON object: attributes, items, interruption, queue, usage (with sub-agents; ownUsage without), damage",
    )
    .addHelpText(
      "after",
      "\nExamples:\n  holdfast show latest | less -R\n  holdfast show 019a3c4d --json | jq '.items[].text'",
    )
    .action((given: string, { full, json }: Options, command: Command) =>
      withStore(command.optsWithGlobals(), async (store) => {
        const id = await resolveId(store, given);
        const reading = await store.read(id);
        const { itemsOf } = await import("../../transcript/items.ts");
        const { childrenOf } = await import("../../store/children.ts");
        const { nullIfUnreadable, sumUsage, usageBelow, usageOf } = await import("../../store/usage.ts");
        // The list may fail because of another session; show this one anyway.
        const children = await nullIfUnreadable(childrenOf(store, reading.id));
        const items = itemsOf(reading, children ? { children } : {});
        const usage = sumUsage([
          usageOf(reading),
          ...((await nullIfUnreadable(usageBelow(store, id)))?.values() ?? []),
        ]);
        if (json) {
          process.stdout.write(`${jsonText({ ...aboutOf(reading), usage, ownUsage: usageOf(reading), items })}\n`);
          return;
        }
        const paint = paintFor(process.stdout);
        const title = reading.attributes.title || ((await nullIfUnreadable(listedTitle(store, id))) ?? "");
        const { attributes, interruption, queue, recovery, holder } = reading;
        const lines = [paint("heading", titleOf(title, items) || "(no prompt yet)"), paint("faint", `session ${id}`)];
        if (attributes.cwd !== undefined) lines.push(paint("faint", `folder  ${plainLine(attributes.cwd)}`));
        const { tokenWords } = await import("../../export/document.ts");
        if (tokenWords(usage)) lines.push(paint("faint", `tokens  ${tokenWords(usage)}`));
        if (attributes.parent)
          lines.push(paint("faint", `sub-agent of session ${plainLine(attributes.parent.session)}`));
        if (attributes.forkedFrom)
          lines.push(paint("faint", `forked from session ${plainLine(attributes.forkedFrom.session)}`));
        if (holder)
          lines.push(paint("faint", plainLine(`open in ${holder.app}, process ${holder.pid} on ${holder.host}`)));
        if (healthOf(recovery) === "corrupt") {
          lines.push(paint("bad", "This session is damaged. The readable part is below. Unreadable:"));
          for (const line of damageLines(recovery, false)) lines.push(paint("bad", `  ${line}`));
        }
        lines.push(...transcriptLines(items, paint, full === true));
        if (interruption) lines.push("", ...interruptionLines(interruption).map((line) => paint("warning", line)));
        if (interruption && !holder)
          lines.push(paint("warning", `Finish it with: holdfast run --resume ${id} --finish`));
        if (queue.length === 1) lines.push("", paint("warning", "1 prompt is queued."));
        if (queue.length > 1) lines.push("", paint("warning", `${queue.length} prompts are queued.`));
        process.stdout.write(`${lines.join("\n")}\n`);
      }),
    );
}

function aboutOf(reading: Reading<unknown>): object {
  const { id, attributes, interruption, queue, recovery, holder } = reading;
  return { id, ...attributes, holder, interruption, queue, health: healthOf(recovery), recovery };
}
