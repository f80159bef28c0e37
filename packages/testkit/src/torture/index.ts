/** What a campaign found, in lines for a person. */
export { conversationLines, verdictLines } from "./verdict.ts";
