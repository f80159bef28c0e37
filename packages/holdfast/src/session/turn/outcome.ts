import { type Admission, unfit } from "../../admit/admit.ts";
import { assertSize, isTooLarge, MESSAGE_BYTES_MAX } from "../../admit/size.ts";
import type { AppStateRecord, ToolEnded } from "../../conversation/records/records.ts";
import { defined } from "../../defined.ts";
import { isHoldfastError } from "../../errors.ts";
import { encodeMessage } from "../../replace/retained.ts";
import type { SessionContext } from "./context.ts";

/** JSON inside a string is escaped: each byte can grow to this many. */
const BYTES_PHRASED_MAX = 12;

/** What is said in place of an outcome that cannot be recorded; null if the error is another one. */
function wordsInstead(error: unknown, isShown: boolean): string | null {
  if (isHoldfastError(error, "RECORD_TOO_LARGE"))
    return `(The result was too large to be recorded: ${String(error.facts["bytes"] ?? "over 512 million")} bytes.)`;
  if (isHoldfastError(error, "RECORD_NOT_JSON") && !isShown)
    return `(The result could not be recorded: ${String(error.facts["why"])}.)`;
  return null;
}

export type Ended = ReturnType<Admission<unknown>["outcome"]>;

/**
 * The tool has run: records at least that, even if its result cannot be recorded. `shown`: the message that the
 * application shows the model instead; `phrase`: makes one from the outcome.
 */
export async function appendOutcome<M>(
  { log, admission }: SessionContext<M>,
  record: ToolEnded,
  ended: Ended,
  shown: M | undefined,
  phrase: (ended: Ended) => M | undefined = () => undefined,
  state: readonly AppStateRecord[] = [],
): Promise<void> {
  const append = (as: Ended, message: M | undefined): Promise<unknown> =>
    log.append([{ ...record, ...as, ...shownOutcome(admission, record, as, message) }, ...state]);
  try {
    await append(ended, shown === undefined ? phrase(ended) : shown);
  } catch (error) {
    const words = wordsInstead(error, shown !== undefined);
    if (words === null) throw error;
    const instead = ended.error === undefined ? { value: words } : { error: words };
    await append(instead, phrase(instead));
  }
}

/** What the model sees instead. Throws MESSAGE_UNFIT, MESSAGE_NOT_JSON, RECORD_TOO_LARGE. */
function shownOutcome<M>(
  admission: Admission<M>,
  { call: id, name }: ToolEnded,
  ended: Ended,
  given: M | undefined,
): Pick<ToolEnded, "shown" | "redacted"> {
  const { dialect } = admission;
  if (given !== undefined) {
    const { stored, redacted } = admission.message(given);
    // Otherwise the call would stay open and read as if it had never run.
    if (dialect.results(admission.decoded({ stored })).length === 0) {
      throw unfit("`shown` must be a message that holds the tool's result");
    }
    return { shown: stored, ...defined({ redacted: redacted || undefined }) };
  }
  // The dialect's message may be larger than the value, and must fit into an epoch too.
  if (isTooLarge(ended, MESSAGE_BYTES_MAX / BYTES_PHRASED_MAX)) {
    const message = dialect.result(
      { id, name },
      ended.error === undefined ? { value: ended.value } : { error: ended.error },
    );
    if (message !== null) assertSize("the result", "tool.ended", encodeMessage(dialect, message), MESSAGE_BYTES_MAX);
  }
  return {};
}
