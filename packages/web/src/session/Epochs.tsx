import type { Epoch } from "../api/wire.ts";
import { Icon } from "../parts/Icon.tsx";
import { replacedWords } from "../state/epochs.ts";
import { hashOf } from "../state/route.ts";
import { countWords } from "../text/durations.ts";

interface Props {
  readonly session: string;
  /** Oldest first. */
  readonly epochs: readonly Epoch[];
  /** The one that is shown; null for the current conversation. */
  readonly until: number | null;
}

/** Leads from the current conversation to those that it replaced, and back. */
export function Epochs({ session, epochs, until }: Props) {
  const last = epochs.at(-1);
  if (until === null) {
    if (!last) return null;
    return (
      <p class="epochs">
        <Icon name="fold" />
        <span class="epochs-words">
          <span>
            The conversation was {replacedWords(last)} {timeWords(last.to)}.
          </span>
          <a href={hashOf({ session, until: last.until })}>
            Read what was replaced ({countWords(last.messages, "message")})
          </a>
        </span>
      </p>
    );
  }
  const index = epochs.findIndex((one) => one.until === until);
  const shown = epochs[index];
  const [older, newer] = [epochs[index - 1], epochs[index + 1]];
  return (
    <section class="epochs is-replaced" aria-label="A replaced conversation">
      <Icon name="fold" />
      <span class="epochs-words">
        <strong>Replaced: the model no longer sees this.</strong>
        {shown ? (
          <span>
            {countWords(shown.messages, "message")}, {replacedWords(shown)} {timeWords(shown.to)}.
          </span>
        ) : null}
        {older ? <a href={hashOf({ session, until: older.until })}>Older</a> : null}
        {newer ? <a href={hashOf({ session, until: newer.until })}>Newer</a> : null}
        <a href={hashOf({ session })}>Back to the current conversation</a>
      </span>
    </section>
  );
}

function timeWords(at: string): string {
  const time = new Date(at);
  const clock = time.toLocaleTimeString("en", { hour: "2-digit", minute: "2-digit", hour12: false });
  return `on ${time.toLocaleDateString("en", { month: "short", day: "numeric" })} at ${clock}`;
}
