/**
 * The first words of a summary that replaces a conversation. It has the user's role, since providers offer no other,
 * but is not a prompt.
 */
export const SUMMARY_HEAD = "[Summary of the conversation so far]";
