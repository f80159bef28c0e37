/** What an event's version means for items of a known version: nothing new, the next change, or changes are missing. */
export function stepTo(version: string, known: string | null): "same" | "next" | "unknown" {
  if (known === null) return "unknown";
  const [name, count] = splitVersion(version);
  const [knownName, knownCount] = splitVersion(known);
  if (name !== knownName || count > knownCount + 1) return "unknown";
  return count === knownCount + 1 ? "next" : "same";
}

/** Whether it can be told which of the two is newer. */
export function isComparable(version: string | null, known: string | null): boolean {
  return version !== null && known !== null && splitVersion(version)[0] === splitVersion(known)[0];
}

/** Whether this is an earlier version of the same items. */
export function isOlder(version: string | null, known: string | null): boolean {
  if (version === null || known === null) return false;
  const [name, count] = splitVersion(version);
  const [knownName, knownCount] = splitVersion(known);
  return name === knownName && count < knownCount;
}

function splitVersion(version: string): [name: string, count: number] {
  const dot = version.lastIndexOf(".");
  return [version.slice(0, dot), Number(version.slice(dot + 1))];
}
