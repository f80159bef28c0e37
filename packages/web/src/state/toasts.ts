import { Refusal } from "../api/http.ts";
import { Observable } from "./observable.ts";

export interface Toast {
  readonly id: number;
  readonly text: string;
  readonly isError: boolean;
  readonly action?: { readonly label: string; readonly run: () => void };
}

export const toasts = new Observable<readonly Toast[]>([]);
const SHOWN_MS = 8000;
let next = 1;

/** Says something for a few seconds. With an action, for as long as twice that. */
export function say(text: string, action?: Toast["action"], isError = false): void {
  const toast: Toast = { id: next++, text, isError, ...(action ? { action } : {}) };
  toasts.update((all) => [...all.slice(-3), toast]);
  setTimeout(() => dismiss(toast.id), action || isError ? 2 * SHOWN_MS : SHOWN_MS);
}

export function dismiss(id: number): void {
  toasts.update((all) => all.filter((one) => one.id !== id));
}

/** Runs something that the person asked for, and says so if it is refused. */
export async function attempt<T>(act: () => Promise<T>, onDone?: (result: T) => void): Promise<boolean> {
  try {
    const result = await act();
    onDone?.(result);
    return true;
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    say(error.message, undefined, true);
    return false;
  }
}
