import { objectOf, type Params } from "./message.ts";

/** What the agent can do with sessions. `answer`: its answer to `initialize`. */
export function sessionCapabilities(answer: Params | null): Params {
  return objectOf(objectOf(answer?.["agentCapabilities"])?.["sessionCapabilities"]) ?? {};
}

/**
 * The agent's answer to `initialize`, with what we can do whatever the agent can. In a version of the protocol that we
 * do not know, it says only what the agent says.
 */
export function withOurs(answer: Params): Params {
  if (answer["protocolVersion"] !== 1) return answer;
  const capabilities = objectOf(answer["agentCapabilities"]) ?? {};
  const own = { list: {}, resume: {}, close: {}, delete: {} };
  return {
    ...answer,
    agentCapabilities: {
      ...capabilities,
      loadSession: true,
      sessionCapabilities: { ...own, ...sessionCapabilities(answer) },
    },
  };
}
