import type { Summary } from "holdfast";
import { ago, plainLine } from "../../terminal/index.ts";
import { folderWords, shortId } from "../lines/labels.ts";
import type { PickerRow } from "./picker.ts";

/**
 * Sessions to choose from: those that need attention first, then the newest. Sub-agents' sessions are reached through
 * their parents.
 */
export function sessionRows(sessions: readonly Summary[], now: number, current?: string): PickerRow[] {
  const urgent = ({ status, unreadable }: Summary): boolean =>
    !unreadable && (status === "interrupted" || status === "waiting");
  const own = sessions.filter(({ parent }) => parent === undefined);
  return [...own.filter(urgent), ...own.filter((one) => !urgent(one))].map((one) => ({
    id: one.id,
    title: plainLine(one.title) || "(no title)",
    mark: [
      one.unreadable ? "unreadable" : one.status === "idle" ? "" : one.status,
      one.queued > 0 ? "queued" : "",
      one.id === current ? "here" : "",
    ]
      .filter((word) => word !== "")
      .join(", "),
    detail: [one.cwd === undefined ? "" : folderWords(one.cwd, 30), ago(one.at, now), shortId(one.id)]
      .filter((word) => word !== "")
      .join(" · "),
    urgent: urgent(one),
  }));
}
