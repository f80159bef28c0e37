import { post } from "./http.ts";

/** Where the token is in the address of the page: `#token=…`. */
const TOKEN = /^#token=([\w.~-]+)(?:&to=(.*))?$/;

/**
 * Exchanges the token in the address for a cookie. The token leaves the address before the request is sent, so that it
 * does not stay in the history, and nobody reads it over a shoulder.
 */
export async function signIn(location: Location, history: History): Promise<void> {
  const found = TOKEN.exec(location.hash);
  if (!found) return;
  history.replaceState(null, "", `${location.pathname}${found[2] ? `#${decodeURIComponent(found[2])}` : ""}`);
  await post("/auth/cookie", { token: found[1]! });
}
