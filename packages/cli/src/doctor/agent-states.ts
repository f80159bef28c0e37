/** What is known of a session of another agent: `unread` if it was not read to its end since it changed. */
export const AGENT_STATES = ["healthy", "damaged", "unread", "unreadable"] as const;
export type AgentState = (typeof AGENT_STATES)[number];
