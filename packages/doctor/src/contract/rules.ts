/** What holds in every healthy conversation of an agent: the judge reports the rest. */
export interface ConversationRules {
  /**
   * How records follow each other. `parents`: each names the one before it (several may name the same). `order`: by
   * their place in the file alone.
   */
  readonly chain: "parents" | "order";
  /**
   * Whether the agent itself closes the calls that were running when a session was interrupted. If it does, calls
   * without a result in the last exchange are no problem.
   */
  readonly closesOpenCalls: boolean;
  /**
   * Whether the calls of an interrupted exchange stay without a result in the record when the user goes on: the agent
   * makes the results up each time that it asks the model.
   */
  readonly leavesOpenCalls?: boolean;
  /** Whether a second record with the id of an earlier one replaces it. */
  readonly repeatsIds: boolean;
  /** What the numbers of the records do. */
  readonly sequence: "none" | "rising";
}
