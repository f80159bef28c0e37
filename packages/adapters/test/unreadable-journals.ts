import { HoldfastError } from "holdfast";
import type { JournalStore } from "holdfast/store";

/** The same store, in which the journals of these sessions cannot be read, as if a newer version had written them. */
export function unreadable(journals: JournalStore, sessions: ReadonlySet<string>): JournalStore {
  const refuse = (id: string): void => {
    if (sessions.has(id)) throw new HoldfastError("FORMAT_NEWER", `${id} has a newer format.`, { id });
  };
  return new Proxy(journals, {
    get: (_, name) => {
      const value = Reflect.get(journals, name) as unknown;
      if (typeof value !== "function") return value;
      if (name !== "read" && name !== "open" && name !== "history") return value.bind(journals);
      return (id: string, ...rest: unknown[]) => {
        refuse(id);
        return value.call(journals, id, ...rest);
      };
    },
  });
}
