import type { SessionState } from "holdfast";
import type { ChatState } from "./host.ts";

/** The state of a session that is open in a server. A person who is asked is more than what the journal tells. */
export function sessionStateOf(open: {
  readonly status: ChatState["status"];
  readonly account: { readonly state: SessionState };
}): SessionState {
  const { status, account } = open;
  return status === "waiting" || status === "running" ? status : account.state;
}
