/**
 * What a summary begins with that takes the place of a conversation: in the user's role, since providers have no other
 * for it, but nobody's prompt.
 */
export const SUMMARY_HEAD = "[Summary of the conversation so far]";
