import { useEffect, useRef, useState } from "preact/hooks";
import type { Ask } from "../api/wire.ts";
import { Icon } from "../parts/Icon.tsx";
import { Plain } from "../parts/Text.tsx";
import type { Actions } from "./actions.ts";

/** A call that waits for approval: all of it, so that one decides about what will run. */
export function AskCard({ ask, actions }: { readonly ask: Ask; readonly actions: Actions }) {
  const [denial, setDenial] = useState<string | null>(null);
  const [isBusy, setBusy] = useState(false);
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => {
    if (denial === "") field.current?.focus();
  }, [denial]);
  const answer = async (word: string, reason?: string): Promise<void> => {
    setBusy(true);
    if (!(await actions.answer(ask.call, word, ask.digest, reason))) setBusy(false);
  };
  return (
    <section class="ask" aria-labelledby={`ask-${ask.digest.slice(0, 12)}`}>
      <h2 id={`ask-${ask.digest.slice(0, 12)}`}>
        <Icon name="hand" />
        Allow <code>{ask.name}</code>?
      </h2>
      {ask.agent ? <p class="hint">A sub-agent asks, for: {ask.agent.task}</p> : null}
      <dl class="ask-parts">
        {ask.parts.map(({ kind, label, text }, index) => (
          <div key={index} class={`ask-${kind}`}>
            <dt>{label}</dt>
            <dd>{kind === "fact" ? text : <Plain class="code" text={text} lines={40} />}</dd>
          </div>
        ))}
      </dl>
      {denial === null ? (
        <div class="buttons">
          {ask.choices.map((choice) => (
            <button
              key={choice.answer + choice.key}
              type="button"
              disabled={isBusy}
              class={choice.answer === "allow" ? "button button-main" : "button"}
              onClick={() => (choice.asksWhy ? setDenial("") : void answer(choice.answer))}
            >
              {choice.label.charAt(0).toUpperCase() + choice.label.slice(1)}
            </button>
          ))}
        </div>
      ) : (
        <form
          class="ask-why"
          onSubmit={(event) => {
            event.preventDefault();
            void answer("deny", denial);
          }}
        >
          <label for={`why-${ask.call}`}>Why not? The model is told.</label>
          <input
            id={`why-${ask.call}`}
            ref={field}
            value={denial}
            onInput={(event) => setDenial(event.currentTarget.value)}
          />
          <div class="buttons">
            <button type="submit" class="button button-main" disabled={isBusy}>
              Deny
            </button>
            <button type="button" class="button" onClick={() => setDenial(null)}>
              Back
            </button>
          </div>
        </form>
      )}
    </section>
  );
}
