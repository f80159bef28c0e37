import { Icon } from "./parts/Icon.tsx";
import { useValue } from "./state/observable.ts";
import { dismiss, toasts } from "./state/toasts.ts";

export function Toasts() {
  const all = useValue(toasts);
  return (
    <div class="toasts" role="status" aria-live="polite">
      {all.map(({ id, text, isError, action }) => (
        <div key={id} class={isError ? "toast toast-error" : "toast"}>
          <span>{text}</span>
          {action ? (
            <button
              type="button"
              class="toast-action"
              onClick={() => {
                dismiss(id);
                action.run();
              }}
            >
              {action.label}
            </button>
          ) : null}
          <button type="button" class="icon-button" aria-label="Dismiss" onClick={() => dismiss(id)}>
            <Icon name="close" />
          </button>
        </div>
      ))}
    </div>
  );
}
