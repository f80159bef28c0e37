/** Whether running a tool twice does no harm. Recorded with each start, so that a resumed turn knows what may be run again (R5). */
export const REPLAY: Readonly<Record<string, "safe" | "never">> = {
  read: "safe",
  list: "safe",
  search: "safe",
  // The same bytes in the same place.
  write: "safe",
  edit: "never",
  shell: "never",
};
