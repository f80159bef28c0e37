import { useState } from "preact/hooks";
import type { Account, Interruption } from "../api/wire.ts";
import { Diff } from "../parts/Diff.tsx";
import { Icon } from "../parts/Icon.tsx";
import { subjectOf } from "../text/item-words.ts";
import { shorten, visible } from "../text/visible.ts";
import type { Actions } from "./actions.ts";

interface Props {
  readonly interruption: Interruption;
  /** What is true of the session, and what can be done with it. */
  readonly account: Account;
  /** Null for someone who may only read. */
  readonly actions: Actions | null;
}

/** What was lost and what was not, when the last turn was cut off, and what to do about it. */
export function Interrupted({ interruption, account, actions }: Props) {
  const { text, answered, at } = interruption;
  const { turn, words, calls, can } = account;
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
        Turn {turn}: {words.status}
      </h2>
      <p class="hint">
        <time dateTime={at}>
          {new Date(at).toLocaleString("en", { dateStyle: "medium", timeStyle: "medium", hour12: false })}
        </time>
        . {words.detail.map((line) => `${line} `)}Everything above this line was saved.
      </p>
      <dl class="losses">
        {calls.length > 0 ? (
          <div class="loss">
            <dt>
              {calls.length === 1 ? "One tool call has no result:" : `${calls.length} tool calls have no result:`}
            </dt>
            {calls.map((call) => (
              <CallLine key={call.id} call={call} />
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
                ? "Nothing is lost."
                : "No tool was running, and the model had not begun to answer. Nothing is lost."}
            </dt>
          </div>
        ) : null}
      </dl>
      {actions ? (
        <div class="buttons">
          {can.finish === true ? (
            <button
              type="button"
              class="button button-main"
              disabled={isBusy}
              onClick={() => void act(() => actions.finish("wait"))}
            >
              Finish the turn
            </button>
          ) : null}
          {can.finish === true && running.length > 0 ? (
            <button
              type="button"
              class="button"
              disabled={isBusy}
              onClick={() => void act(() => actions.finish("stop"))}
            >
              Stop the {running.length === 1 ? "process" : "processes"} and finish
            </button>
          ) : null}
          {can.leave === true ? (
            <button type="button" class="button" disabled={isBusy} onClick={() => void act(() => actions.leave())}>
              Leave it
            </button>
          ) : null}
          {can.fork === true ? (
            <button type="button" class="button" disabled={isBusy} onClick={() => void act(() => actions.fork())}>
              <Icon name="fork" />
              Fork from here
            </button>
          ) : null}
          {can.finish === true ? (
            <p class="hint">
              Finish:{" "}
              {can.answer === true ? "you are asked about each waiting call" : "the model is told what happened"}, and
              the turn continues. Leave: nothing runs until your next prompt.
            </p>
          ) : can.takeOver !== true ? (
            <p class="hint">{can.finish.words}</p>
          ) : null}
        </div>
      ) : null}
    </section>
  );
}

function CallLine({ call }: { readonly call: Interruption["calls"][number] }) {
  const { name, input, effect, words, changes, process } = call;
  return (
    <dd class={`loss-call effect-${effect}`}>
      <code>{name}</code> <span class="call-subject">{visible(subjectOf(input))}</span>{" "}
      <span class="call-words">{words}</span>
      {process?.printed ? (
        <samp class="printed">{visible(process.printed.trimEnd().split("\n").slice(-3).join("\n"))}</samp>
      ) : null}
      {changes?.files.map(({ path, diff }) =>
        diff ? (
          <details key={path} class="since">
            <summary>{visible(path)}</summary>
            <Diff rows={diff} />
          </details>
        ) : null,
      )}
    </dd>
  );
}
