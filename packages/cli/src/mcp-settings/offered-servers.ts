import type { OfferedServer } from "@holdfast/server/internal/contract";
import { type Servers, TIMEOUT_SECONDS } from "./server-settings.ts";
import { isServerName } from "./tool-names.ts";

const NAME_CHARS_MAX = 32;

/**
 * The servers of an editor's configuration as settings, under names that tools and rules can have and that no other
 * server has: a rule for the user's own server does not apply to another server with its name.
 */
export function offeredServers(offered: readonly OfferedServer[], taken: readonly string[]): Servers {
  const used = new Set(taken.map((name) => name.toLowerCase()));
  return Object.fromEntries(
    offered.map(({ name: given, ...settings }) => {
      const name = freeName(given, used);
      used.add(name.toLowerCase());
      return [name, { ...settings, timeoutSeconds: TIMEOUT_SECONDS, enabled: true }];
    }),
  );
}

function freeName(given: string, used: ReadonlySet<string>): string {
  const plain = given
    .replaceAll(/[^A-Za-z0-9-]+/g, "_")
    .replaceAll(/^[_-]+|_+$/g, "")
    .slice(0, NAME_CHARS_MAX)
    .replace(/_+$/, "");
  const name = isServerName(plain) ? plain : "server";
  for (let count = 1; ; count++) {
    const suffix = count === 1 ? "" : `-${count}`;
    const tried = `${name.slice(0, NAME_CHARS_MAX - suffix.length).replace(/_+$/, "")}${suffix}`;
    if (!used.has(tried.toLowerCase())) return tried;
  }
}
