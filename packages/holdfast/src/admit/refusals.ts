import { HoldfastError } from "../errors.ts";
import type { Json } from "../journal/record.ts";

/** The errors by which sessions refuse a call. When one is thrown, nothing has happened. */

export function invalid(why: string, facts: Record<string, Json> = {}): HoldfastError {
  return new HoldfastError("RECORD_INVALID", `Nothing was recorded: ${why}. Nothing was changed.`, { why, ...facts });
}

/** The given id may be anything. */
function describeId(id: unknown): string {
  return typeof id === "string" ? id.slice(0, 80) : `(a value of the type ${typeof id})`;
}

const END_FIRST = "the new one was not started. End or abort it first, or steer it with turn.append";

export function turnOpen(session: string, turn: number, what = END_FIRST): HoldfastError {
  const message = `Turn ${turn} of session ${session} is still open: ${what}.`;
  return new HoldfastError("TURN_OPEN", message, { session, turn });
}

export function turnEnded(session: string, turn: number, what: string): HoldfastError {
  const message = `Turn ${turn} of session ${session} is over: ${what} was not recorded. Start a turn, or resume this one.`;
  return new HoldfastError("TURN_ENDED", message, { session, turn });
}

export function turnUnanswered(session: string, turn: number): HoldfastError {
  const message =
    `Turn ${turn} of session ${session} has no answer, so it cannot be completed: it was not ended, and nothing was ` +
    "recorded. Continue it with resumeTurn, or start another turn instead.";
  return new HoldfastError("TURN_UNANSWERED", message, { session, turn });
}

export function sessionClosed(session: string): HoldfastError {
  const message = `Session ${session} is closed here. Nothing was recorded. Resume it to continue.`;
  return new HoldfastError("SESSION_CLOSED", message, { session });
}

export function turnHandedOver(session: string, turn: number): HoldfastError {
  const message =
    `Turn ${turn} of session ${session} is handed over: this process is closing the session, and the next one continues the turn. ` +
    "This call began nothing and recorded nothing; everything recorded before is safe. Let the loop end: it did not fail.";
  return new HoldfastError("TURN_HANDED_OVER", message, { session, turn });
}

export function nothingToResume(session: string, turns: number): HoldfastError {
  const why = turns === 0 ? "it has no turn yet" : "its last turn completed";
  const message = `Session ${session} has nothing to resume: ${why}. Start a turn.`;
  return new HoldfastError("NOTHING_TO_RESUME", message, { session });
}

export function messageUnknown(session: string, id: unknown): HoldfastError {
  const message = `Session ${session} has no message ${JSON.stringify(describeId(id))} in its current conversation. Nothing was changed.`;
  return new HoldfastError("MESSAGE_UNKNOWN", message, { session, message: describeId(id) });
}

export function messageIdTaken(id: string, why = "another message has this id"): HoldfastError {
  const shown = id.slice(0, 80);
  const text = `The message ${JSON.stringify(shown)} was not recorded: ${why}. Recorded messages are unchanged. Give the new message its own id.`;
  return new HoldfastError("MESSAGE_ID_TAKEN", text, { message: shown });
}

export function keyTaken(key: string): HoldfastError {
  const shown = key.slice(0, 80);
  const message = `A call or prompt with the key ${JSON.stringify(shown)} was recorded with different content, so this one was not recorded. What is recorded is unchanged. Give each call and each prompt its own key.`;
  return new HoldfastError("KEY_TAKEN", message, { key: shown });
}

export function promptKnown(session: string, key: string, turn: number): HoldfastError {
  const shown = key.slice(0, 80);
  const message =
    `The prompt with the key ${JSON.stringify(shown)} has its turn already, turn ${turn} of session ${session}: no other was started, and nothing was ` +
    "recorded. `session.answer(key)` resolves with what that turn produced, when it is over.";
  return new HoldfastError("PROMPT_KNOWN", message, { session, key: shown, turn });
}

export function queueUnknown(id: unknown): HoldfastError {
  const message = `The queue has no prompt ${JSON.stringify(describeId(id))}: it was delivered or withdrawn. Nothing was recorded.`;
  return new HoldfastError("QUEUE_UNKNOWN", message, { id: describeId(id) });
}

export function callUnknown(call: unknown): HoldfastError {
  const message =
    `No recorded message makes the call ${JSON.stringify(describeId(call))}, so nothing was recorded and no tool was run. Append the message first, ` +
    "or pass name and input for a tool that starts while its message is still streaming.";
  return new HoldfastError("CALL_UNKNOWN", message, { call: describeId(call) });
}

export function callTaken(call: string, why: string, facts: Record<string, Json> = {}): HoldfastError {
  const message = `The call ${JSON.stringify(call.slice(0, 80))} ${why}: nothing was recorded and no tool was run.`;
  return new HoldfastError("CALL_TAKEN", message, { call: call.slice(0, 80), ...facts });
}

export function callInDoubt(call: string, name: string): HoldfastError {
  const message =
    `The call ${JSON.stringify(call.slice(0, 80))} of ${JSON.stringify(name.slice(0, 80))} was started before the turn was cut off, ` +
    "and its outcome is unknown: the tool did not run again. It runs again only if it is safe to repeat by the rule recorded " +
    'with its start and by today\'s (`replay: "safe"`), or if its probe says that it has not taken effect.';
  return new HoldfastError("CALL_IN_DOUBT", message, { call: call.slice(0, 80) });
}

export function toolMissing(tools: readonly string[], calls: readonly string[]): HoldfastError {
  const names = tools.map((name) => JSON.stringify(name.slice(0, 80))).join(", ");
  const message =
    `The turn waits: it has calls of tools that this program does not have: ${names}. None of them ran, and nothing is ` +
    'lost. Resume the turn with a version that has them; or resume it with `calls: "close"`, and the model is told how ' +
    "far each call got.";
  return new HoldfastError("TOOL_MISSING", message, { tools: [...tools], calls: [...calls] });
}

/** Their words also reach the model, as the outcome of a tool that does not catch them. */
function stepNames(call: string, step: string): { step: string; call: string; text: string } {
  const names = { step: step.slice(0, 80), call: call.slice(0, 80) };
  return { ...names, text: `The step ${JSON.stringify(names.step)} of the call ${JSON.stringify(names.call)}` };
}

export function stepInDoubt(given: string, name: string): HoldfastError {
  const { call, step, text } = stepNames(given, name);
  const message =
    `${text} was started by an earlier run, and its outcome is unknown: it did not run again. ` +
    "It may have taken effect: check before repeating it.";
  return new HoldfastError("STEP_IN_DOUBT", message, { call, step });
}

export function stepValueLost(given: string, name: string): HoldfastError {
  const { call, step, text } = stepNames(given, name);
  const message =
    `${text} finished in an earlier run, and did not run again. What it returned could not be recorded, so the call ` +
    "cannot continue from there.";
  return new HoldfastError("STEP_VALUE_LOST", message, { call, step });
}

export function stepLimit(given: string, name: string, limit: string): HoldfastError {
  const { call, step, text } = stepNames(given, name);
  const message = `${text} was not run: the call has reached its limit of ${limit}. Steps before it are recorded.`;
  return new HoldfastError("STEP_LIMIT", message, { call, step, limit });
}

export function stepTaken(given: string, name: string): HoldfastError {
  const { call, step, text } = stepNames(given, name);
  const message = `${text} was asked for twice in one run: it did not run a second time. Give each step its own name.`;
  return new HoldfastError("STEP_TAKEN", message, { call, step });
}

export function draftGone(): HoldfastError {
  const message =
    "The message was not recorded: its draft was discarded, or another draft or message replaced it. To record it anyway, use turn.append.";
  return new HoldfastError("DRAFT_DISCARDED", message);
}
