import { useState } from "preact/hooks";
import type { Interruption } from "../api/wire.ts";
import { Icon } from "../parts/Icon.tsx";
import { interruptionSentence, sortCalls, subjectOf } from "../text/item-words.ts";
import { shorten, visible } from "../text/visible.ts";
import type { Actions } from "./actions.ts";

interface Props {
  readonly interruption: Interruption;
  /** Null for someone who may only read. */
  readonly actions: Actions | null;
}

/** What was lost and what was not, when the last turn was cut off, and what to do about it. */
export function Interrupted({ interruption, actions }: Props) {
  const { calls, text, answered, at } = interruption;
  const { unknown, neverRan, waiting } = sortCalls(calls);
  const running = calls.filter(({ process }) => process?.running);
  const [isBusy, setBusy] = useState(false);
  const act = async (run: () => Promise<boolean>): Promise<void> => {
    setBusy(true);
    await run();
    setBusy(false);
  };
  return (
    <section class="interrupted" aria-labelledby="interrupted-title">
      <h2 id="interrupted-title">
        <Icon name="warning" />
        {interruptionSentence(interruption)}
      </h2>
      <p class="hint">
        <time dateTime={at}>
          {new Date(at).toLocaleString("en", { dateStyle: "medium", timeStyle: "medium", hour12: false })}
        </time>
        . Everything above this line was saved.
      </p>
      <dl class="losses">
        {unknown.length > 0 ? (
          <div class="loss loss-unknown">
            <dt>
              {unknown.length === 1
                ? "One tool had started. Nobody knows whether it finished:"
                : `${unknown.length} tools had started. Nobody knows whether they finished:`}
            </dt>
            {unknown.map((call) => (
              <CallLine key={call.call} call={call} />
            ))}
          </div>
        ) : null}
        {neverRan.length > 0 ? (
          <div class="loss loss-never">
            <dt>{neverRan.length === 1 ? "One tool never ran:" : `${neverRan.length} tools never ran:`}</dt>
            {neverRan.map((call) => (
              <CallLine key={call.call} call={call} />
            ))}
          </div>
        ) : null}
        {waiting.length > 0 ? (
          <div class="loss loss-waiting">
            <dt>Waiting for approval:</dt>
            {waiting.map((call) => (
              <CallLine key={call.call} call={call} />
            ))}
          </div>
        ) : null}
        {text.trim() !== "" ? (
          <div class="loss loss-text">
            <dt>The model was saying:</dt>
            <dd>
              <blockquote>
                {visible(shorten(text, 12, 1200).text)}
                <span class="cursor-cut" aria-hidden="true" />
              </blockquote>
            </dd>
          </div>
        ) : null}
        {calls.length === 0 && text.trim() === "" ? (
          <div class="loss">
            <dt>
              {answered
                ? "The model had answered; only the end of the turn was not recorded. Nothing is lost."
                : "No tool was running, and the model had not begun to answer. Nothing is lost."}
            </dt>
          </div>
        ) : null}
      </dl>
      {actions ? (
        <div class="buttons">
          <button
            type="button"
            class="button button-main"
            disabled={isBusy}
            onClick={() => void act(() => actions.finish("wait"))}
          >
            Finish the turn
          </button>
          {running.length > 0 ? (
            <button
              type="button"
              class="button"
              disabled={isBusy}
              onClick={() => void act(() => actions.finish("stop"))}
            >
              Stop the {running.length === 1 ? "process" : "processes"} and finish
            </button>
          ) : null}
          <button type="button" class="button" disabled={isBusy} onClick={() => void act(() => actions.leave())}>
            Leave it
          </button>
          <button type="button" class="button" disabled={isBusy} onClick={() => void act(() => actions.fork())}>
            <Icon name="fork" />
            Fork from here
          </button>
          <p class="hint">
            Finish: the model is told what happened and continues. Leave: nothing runs until your next prompt.
          </p>
        </div>
      ) : null}
    </section>
  );
}

function CallLine({ call }: { readonly call: Interruption["calls"][number] }) {
  const { name, input, process } = call;
  return (
    <dd class="loss-call">
      <code>{name}</code> <span class="call-subject">{visible(subjectOf(input))}</span>
      {process ? (
        <span class="hint">
          {process.running
            ? `still running, process ${process.pid}`
            : `its process ended${process.exitCode === undefined ? "" : ` with exit code ${process.exitCode}`}`}
        </span>
      ) : null}
    </dd>
  );
}
