/**
 * Whether a text consists of these pieces in order, with anything between them. Linear time for any text, because the
 * text may come from a model.
 */
export function isJoinedBy(pieces: readonly string[], text: string): boolean {
  const first = pieces[0] ?? "";
  if (pieces.length <= 1) return text === first;
  const last = pieces.at(-1)!;
  if (!text.startsWith(first) || !text.endsWith(last) || text.length < first.length + last.length) return false;
  let at = first.length;
  const end = text.length - last.length;
  for (const piece of pieces.slice(1, -1)) {
    const found = text.indexOf(piece, at);
    if (found < 0 || found + piece.length > end) return false;
    at = found + piece.length;
  }
  return true;
}
