/**
 * P2 and S8: what repair cuts off is kept. Compares a session's segments before and after, and names those with bytes
 * that are neither in place nor at the end of a quarantine file.
 */
export function keptElsewhere(
  before: ReadonlyMap<string, Uint8Array | null>,
  after: ReadonlyMap<string, Uint8Array | null>,
  id: string,
): readonly string[] {
  const inSession = (path: string): boolean => path.includes(`/sessions/${id}/`);
  const quarantined = [...after].flatMap(([path, bytes]) =>
    bytes !== null && inSession(path) && path.includes("/quarantine/") ? [Buffer.from(bytes)] : [],
  );
  const lost: string[] = [];
  for (const [path, content] of before) {
    if (content === null || !inSession(path) || !/\/\d+\.jsonl$/u.test(path)) continue;
    const bytes = withTail(before, path, content);
    const found = after.get(path);
    // A packed segment has another name, and is compared record by record.
    if (found == null) {
      if (!after.has(`${path}.zst`)) lost.push(`${path} is gone`);
      continue;
    }
    const now = withTail(after, path, found);
    if (Buffer.compare(bytes, now.subarray(0, bytes.length)) === 0) continue;
    let same = 0;
    while (bytes[same] === now[same]) same += 1;
    const rest = Buffer.from(bytes.subarray(same));
    const kept = quarantined.some((file) => file.subarray(-rest.length).equals(rest));
    if (!kept) lost.push(`${rest.length} bytes of ${path} were cut off at ${same} and are not in quarantine (S8)`);
  }
  return lost;
}

/**
 * The end of a segment that was not closed is in a separate file, which takes precedence; of several, the one that
 * begins last.
 */
function withTail(files: ReadonlyMap<string, Uint8Array | null>, path: string, content: Uint8Array): Uint8Array {
  let newest = -1;
  let whole = content;
  for (const [name, tail] of files) {
    const offset = name.startsWith(`${path}.tail-`) ? Number(name.slice(path.length + ".tail-".length)) : Number.NaN;
    if (tail === null || !(offset > newest)) continue;
    newest = offset;
    whole = Buffer.concat([content.subarray(0, offset), tail]);
  }
  return whole;
}
