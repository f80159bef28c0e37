/**
 * The first words of a summary that replaces a conversation. It has the user's role, since providers offer no other,
 * but is not a prompt.
 */
export const SUMMARY_HEAD = "[Summary of the conversation so far]";

/** What the offline model notes for itself at the end of a summary. */
const OWN_NOTES = /\s*<offline-progress>[\s\S]*?<\/offline-progress>/g;

/** A summary, as people read it. */
export function shownSummary(text: string): string {
  return text.startsWith(SUMMARY_HEAD) ? text.replaceAll(OWN_NOTES, "") : text;
}
