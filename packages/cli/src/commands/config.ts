import { existsSync } from "node:fs";
import { homedir } from "node:os";
import type { Command } from "commander";
import { shownAddress } from "holdfast/address";
import { configPath, explainConfig, type SettingValue } from "../config.ts";
import { failureOf } from "../failure.ts";
import { jsonText } from "../terminal/json.ts";
import { plainLine } from "../terminal/plain.ts";
import { tableLines } from "../terminal/table.ts";

export function register(program: Command): void {
  program
    .command("config")
    .summary("show the configuration and where each value comes from")
    .description(
      "Shows each setting and where its value comes from: a flag, the environment, the configuration file or the default, in that order. Provider keys are read from the environment only.",
    )
    .option("--json", "print JSON")
    .addHelpText("after", "\nExample:\n  HOLDFAST_MODEL=anthropic/claude-sonnet-4-5 holdfast config")
    .action(async (_options: object, command: Command) => {
      const flags = command.optsWithGlobals();
      const path = configPath();
      const { defaultAddress } = await import("holdfast/internal");
      const rows = explainConfig(flags).map((row) =>
        row.setting.key === "store" && row.value === undefined
          ? { ...row, value: placeBy(() => shownAddress(defaultAddress(process.env, process.platform, homedir))) }
          : { ...row, value: shown(row) },
      );
      if (flags["json"]) {
        const values = rows.map(({ setting, value, from }) => [
          setting.key,
          { value: value ?? null, from, env: setting.env ?? null },
        ]);
        process.stdout.write(`${jsonText({ file: path, settings: Object.fromEntries(values) }, 2)}\n`);
        return;
      }
      const cells = rows.map(({ setting, value, from }) => [
        setting.key,
        plainLine(value === undefined ? "—" : typeof value === "string" ? value : JSON.stringify(value)),
        plainLine(from.join(", ")),
        setting.env ?? "",
        setting.envOnly ? "" : (setting.flag ?? ""),
      ]);
      const columns = [
        { title: "setting" },
        { title: "value", shrinksTo: 16 },
        { title: "from", shrinksTo: 16 },
        { title: "environment" },
        { title: "flag" },
      ];
      process.stdout.write(
        `${tableLines(columns, cells, process.stdout.columns).join("\n")}\n\nfile: ${fileWords(path)}\n`,
      );
    });
}

/** Undefined for a user without a home folder, who has no default store. */
function placeBy(defaultAddress: () => string): string | undefined {
  try {
    return defaultAddress();
  } catch (error) {
    if (failureOf(error).code === "STORE_URL_INVALID") return undefined;
    throw error;
  }
}

function fileWords(path: string | null): string {
  if (path === null) return "none: this user has no home folder";
  return existsSync(path) ? plainLine(path) : `${plainLine(path)} (does not exist)`;
}

/** An address may contain a password, and output ends up on screens and in logs. */
function shown({ setting, value }: SettingValue): SettingValue["value"] {
  // The settings of a server may contain keys: "holdfast mcp" shows the rest of them.
  if (setting.kind === "servers") return Object.keys(value ?? {});
  const isAddress = setting.key === "store" || setting.key === "baseUrl";
  return isAddress && typeof value === "string" ? shownAddress(value) : value;
}
