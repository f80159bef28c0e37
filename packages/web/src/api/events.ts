import { urlOf } from "./http.ts";
import type { StateEvent, TextEvent } from "./wire.ts";

export interface Follower {
  /** A record was written, by any process. */
  record(record: { readonly seq: number; readonly kind: string }): void;
  text(event: TextEvent): void;
  state(event: StateEvent): void;
  /** Everything known is out of date. */
  startOver(): void;
  /** The server no longer has the session open. */
  closed(): void;
  deleted(): void;
  /** Whether the connection is there. The browser reconnects by itself. */
  connection(isOpen: boolean): void;
}

/** Follows a session after a cursor; returns a function that ends it. */
export function follow(id: string, after: string, follower: Follower): () => void {
  const source = new EventSource(urlOf(`/sessions/${id}/events`, { after }));
  const on = <T>(name: string, take: (data: T) => void): void =>
    source.addEventListener(name, (event) => take(JSON.parse((event as MessageEvent<string>).data) as T));
  on("record", follower.record);
  on("text", follower.text);
  on("state", follower.state);
  on("start-over", () => follower.startOver());
  on("closed", () => follower.closed());
  on("deleted", () => {
    source.close();
    follower.deleted();
  });
  source.addEventListener("open", () => follower.connection(true));
  source.addEventListener("error", () => follower.connection(false));
  return () => source.close();
}
