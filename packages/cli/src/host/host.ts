export type * from "@holdfast/server/contract";
export type { ApprovalChoice, FailureShown, LiveAnswer, ShownPart } from "@holdfast/server/internal";
