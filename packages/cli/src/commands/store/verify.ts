import type { Command } from "commander";
import type { Store } from "holdfast";
import type { Verification } from "holdfast/store";
import { EXIT } from "../../exit.ts";
import { type Failure, failureOf } from "../../failure.ts";
import { damageLines, emptyLines, type Health, sizeWords, verifiedHealth } from "../../store/damage.ts";
import { idsFor } from "../../store/for-each-session.ts";
import { withStore } from "../../store/open.ts";
import { type Paint, paintFor, type Style } from "../../terminal/colour.ts";
import { jsonText } from "../../terminal/json.ts";
import { progressOn } from "../../terminal/progress.ts";

interface Options {
  readonly all?: true;
  readonly json?: true;
}

/** The result for one session. */
interface SessionVerdict {
  readonly id: string;
  readonly health: Health | "unreadable";
  readonly found?: Verification;
  readonly failure?: Failure;
}

const STYLES: Readonly<Record<SessionVerdict["health"], Style>> = {
  whole: "good",
  torn: "warning",
  corrupt: "bad",
  unreadable: "bad",
};

export function register(program: Command): void {
  program
    .command("verify")
    .argument("[id...]", "session ids, or their first or last characters (default: all)")
    .summary("check sessions for torn or corrupt parts")
    .description(
      "Reads every byte of sessions and reports whether each is whole, torn (it has an unacknowledged end, left by a crash) or corrupt (durable data is damaged), and where. Changes nothing and is safe on sessions in use. Exit code 1 if it finds a problem.",
    )
    .option("--all", "all sessions")
    .option("--json", "one JSON object per session, one per line")
    .addHelpText("after", "\nExamples:\n  holdfast verify\n  holdfast verify latest --json")
    .action((given: readonly string[], options: Options, command: Command) =>
      withStore(command.optsWithGlobals(), async (store) => {
        const ids = await idsFor(store, given, options.all === true || given.length === 0);
        const progress = progressOn(process.stderr, ids.length);
        const paint = paintFor(process.stdout);
        const counts = new Map<SessionVerdict["health"], number>();
        for (const [done, id] of ids.entries()) {
          progress.show(done, "sessions read");
          const finding = await verifySession(store, id);
          counts.set(finding.health, (counts.get(finding.health) ?? 0) + 1);
          if (!options.json && finding.health === "whole" && given.length === 0) continue;
          progress.clear();
          process.stdout.write(options.json ? `${jsonText(jsonOf(finding))}\n` : textOf(finding, paint));
        }
        progress.clear();
        if (ids.length > (counts.get("whole") ?? 0)) process.exitCode = EXIT.failed;
        if (!options.json && given.length !== 1) process.stdout.write(`${sumOf(ids.length, counts)}\n`);
      }),
    );
}

async function verifySession(store: Store, id: string): Promise<SessionVerdict> {
  try {
    const found = await store.verify(id);
    return { id, health: verifiedHealth(found), found };
  } catch (error) {
    const failure = failureOf(error);
    if (failure.code === "UNEXPECTED") throw error;
    return { id, health: "unreadable", failure };
  }
}

function textOf({ id, health, found, failure }: SessionVerdict, paint: Paint): string {
  const lines = [`${paint(STYLES[health], health.padEnd(10))} ${id}${found ? `  ${sizeWords(found)}` : ""}`];
  for (const line of found ? [...damageLines(found, false), ...emptyLines(found)] : [failure!.message])
    lines.push(`           ${line}`);
  return `${lines.join("\n")}\n`;
}

function jsonOf({ id, health, found, failure }: SessionVerdict): object {
  return { id, health, ...found, ...(failure ? { error: { code: failure.code, message: failure.message } } : {}) };
}

function sumOf(total: number, counts: ReadonlyMap<SessionVerdict["health"], number>): string {
  const parts = (["whole", "torn", "corrupt", "unreadable"] as const)
    .filter((health) => health === "whole" || counts.has(health))
    .map((health) => `${counts.get(health) ?? 0} ${health}`);
  return `${total} ${total === 1 ? "session" : "sessions"}: ${parts.join(", ")}.`;
}
