import { resolve } from "node:path";
import { shownAddress } from "holdfast/address";
import { type Flags, namedStore } from "./config.ts";
import { readAddress } from "./read-address.ts";

/** The store that the command line of this process names. */
let onCommandLine: string | undefined;

export function rememberStore({ store }: Flags): void {
  onCommandLine = typeof store === "string" ? store : undefined;
}

/**
 * A command for the user to type. All hints are made here. It names the store that this process was told to use, so
 * that it finds the same sessions in another folder, and in a shell without HOLDFAST_STORE.
 */
export function typedCommand(command: string): string {
  const store = storeForHints();
  return store === null ? `holdfast ${command}` : `holdfast ${command} --store ${shellQuoted(store)}`;
}

function storeForHints(): string | null {
  const given = onCommandLine ?? process.env["HOLDFAST_STORE"];
  if (given === undefined || given === "") return null;
  const address = namedStore(given);
  const named = readAddress(address);
  if (named && "path" in named) return `${named.kind === "sqlite" ? "sqlite:" : ""}${resolve(named.path)}`;
  const shown = shownAddress(address);
  // A password is never printed. Without it, only the variable itself leads to the store.
  return shown !== address && onCommandLine === undefined ? null : shown;
}

export function shellQuoted(word: string): string {
  if (/^[\w@%+=:,./-]+$/.test(word)) return word;
  return process.platform === "win32" ? `"${word}"` : `'${word.replaceAll("'", "'\\''")}'`;
}
