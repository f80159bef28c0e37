import { Observable } from "./observable.ts";

export type Theme = "light" | "dark";

const KEY = "holdfast-theme";
const dark = window.matchMedia("(prefers-color-scheme: dark)");

/** What the person chose, else what the system prefers. */
export const theme = new Observable<Theme>(stored() ?? (dark.matches ? "dark" : "light"));

export function applyTheme(): void {
  const apply = (): void => {
    document.documentElement.dataset["theme"] = theme.value;
  };
  theme.subscribe(apply);
  dark.addEventListener("change", () => {
    if (stored() === null) theme.set(dark.matches ? "dark" : "light");
  });
  apply();
}

export function toggleTheme(): void {
  const next: Theme = theme.value === "dark" ? "light" : "dark";
  try {
    localStorage.setItem(KEY, next);
  } catch {
    // Storage is switched off: the choice lasts until the page is left.
  }
  theme.set(next);
}

function stored(): Theme | null {
  try {
    const value = localStorage.getItem(KEY);
    return value === "light" || value === "dark" ? value : null;
  } catch {
    return null;
  }
}
