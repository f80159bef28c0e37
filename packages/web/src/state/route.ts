import { Observable } from "./observable.ts";
import { hashOf, parseRoute, type Route } from "./parse-route.ts";

export { hashOf, type Route, type Tab } from "./parse-route.ts";

export const route = new Observable<Route>({ session: null, tab: "conversation", item: null, until: null });

export function go(to: Partial<Route>): void {
  window.location.hash = hashOf(to);
}

export function followAddress(): void {
  const read = (): void => route.set(parseRoute(window.location.hash));
  window.addEventListener("hashchange", read);
  read();
}
