import { useState } from "preact/hooks";
import type { Actions } from "./actions.ts";

/** In place of the composer. `words`: why no prompt can be given. `actions`: null if it cannot be taken over. */
export function NoPrompt({ words, actions }: { readonly words: string; readonly actions: Actions | null }) {
  const [isBusy, setBusy] = useState(false);
  const takeOver = async (): Promise<void> => {
    setBusy(true);
    await actions?.takeOver();
    setBusy(false);
  };
  return (
    <div class="read-only take-over">
      <p>{words}</p>
      {actions ? (
        <button type="button" class="button" disabled={isBusy} onClick={() => void takeOver()}>
          Take it over
        </button>
      ) : null}
    </div>
  );
}
