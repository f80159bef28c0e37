import type { ConversationFault, Evidence } from "./evidence.ts";
import { historyFaults } from "./judge-history.ts";
import { interruptionFaults } from "./judge-interruption.ts";
import { readingFaults } from "./judge-reading.ts";
import { toolFaults } from "./judge-tools.ts";
import { viewFaults } from "./judge-views.ts";

/**
 * Checks a session after its agent's death: nothing acknowledged is lost, no tool ran twice, and the provider accepts
 * the next request. Pure.
 */
export function judgeConversation(evidence: Evidence): ConversationFault[] {
  return [
    ...historyFaults(evidence),
    ...toolFaults(evidence),
    ...readingFaults(evidence),
    ...interruptionFaults(evidence),
    ...viewFaults(evidence),
  ];
}
