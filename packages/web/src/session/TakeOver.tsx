import { useState } from "preact/hooks";
import type { Actions } from "./actions.ts";

/** In place of the composer, for another program's session. `words`: why it is not simply continued. */
export function TakeOver({ words, actions }: { readonly words: string; readonly actions: Actions }) {
  const [isBusy, setBusy] = useState(false);
  const takeOver = async (): Promise<void> => {
    setBusy(true);
    await actions.takeOver();
    setBusy(false);
  };
  return (
    <div class="read-only take-over">
      <p>{words}</p>
      <button type="button" class="button" disabled={isBusy} onClick={() => void takeOver()}>
        Take it over
      </button>
    </div>
  );
}
