import { realpathSync } from "node:fs";
import { type Flags, loadConfig } from "../config.ts";
import { CommandError, EXIT } from "../exit.ts";
import { onDisk } from "../store/address.ts";
import { addressOf } from "../store/open.ts";
import { withoutPasswords } from "../without-passwords.ts";

/** A unit of systemd for `holdfast watch`, with the absolute paths of this installation. */
export async function watchUnit(flags: Flags): Promise<string> {
  const address = await addressOf(loadConfig(flags));
  const place = onDisk(address);
  const store = place ? `${place.kind === "sqlite" ? "sqlite:" : ""}${place.path}` : address;
  if (withoutPasswords(store) !== store)
    throw new CommandError(
      EXIT.usage,
      "USAGE",
      "The address of the store has a password, which must not stand in a unit. Use a password file (.pgpass). Nothing was written.",
    );
  const command = [process.execPath, realpathSync(process.argv[1]!), "watch", "--store", store];
  return `[Unit]
Description=Keeps what AI agents write, with holdfast watch

[Service]
ExecStart=${command.map(quoted).join(" ")}
Restart=on-failure
RestartSec=5
Nice=10

[Install]
WantedBy=default.target
`;
}

/** As systemd reads words: in quotation marks, without its own signs. */
function quoted(word: string): string {
  const text = word.replaceAll("%", "%%").replaceAll("$", "$$$$");
  if (/^[\w@%+=:,./$-]+$/.test(text)) return text;
  return `"${text.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n")}"`;
}
