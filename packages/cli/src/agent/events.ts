import type { Usage } from "holdfast";
import type { Decision } from "../tools/permission/decide.ts";
import type { TurnRun } from "./loop.ts";

/** What an agent reports while it works. */
export interface AgentEvents
  extends Pick<TurnRun, "show" | "retrying" | "compacting" | "compacted" | "cutOff" | "used"> {
  readonly started: (call: string, name: string, input: unknown) => void;
  readonly ended: (call: string) => void;
  readonly output: (call: string, text: string) => void;
  /** Something about its tools that the user should know. */
  readonly warned: (text: string) => void;
  /** A sub-agent is working on this call, in this session. */
  readonly delegated: (call: string, session: string) => void;
  /** The sub-agent of this call started a tool, described by `words`. */
  readonly startedBelow: (call: string, words: string) => void;
  /** A sub-agent's total usage so far. */
  readonly usedBelow: (session: string, usage: Usage) => void;
  /** `isBelow`: the call was a sub-agent's. */
  readonly denied: (
    call: { readonly toolName: string; readonly input: unknown },
    decision: Decision,
    isBelow?: boolean,
  ) => void;
}

/** For an agent without an observer. */
export const SILENT: AgentEvents = {
  started: () => {},
  ended: () => {},
  output: () => {},
  warned: () => {},
  delegated: () => {},
  startedBelow: () => {},
  usedBelow: () => {},
  denied: () => {},
  show: () => {},
  retrying: () => {},
  compacting: () => {},
  compacted: () => {},
  cutOff: () => {},
  used: () => {},
};
