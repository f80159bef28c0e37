/** What a campaign found, in lines for a person. */
export { conversationLines, powerCutLines, verdictLines } from "./verdict.ts";
