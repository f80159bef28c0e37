/** The beginning of a text, cut between two characters. */
export function shorten(text: string, charactersMax: number): string {
  if (text.length <= charactersMax) return text.toWellFormed();
  const last = text.charCodeAt(charactersMax - 1);
  const isHalf = last >= 0xd800 && last <= 0xdbff;
  return text.slice(0, isHalf ? charactersMax - 1 : charactersMax).toWellFormed();
}
