import type { Summary } from "holdfast";
import { shownStatus } from "../../store/shown-status.ts";
import { ago, plainLine } from "../../terminal/index.ts";
import { folderWords, shortId } from "../lines/labels.ts";
import type { PickerRow } from "./picker.ts";

/**
 * Sessions to choose from: those that need attention first, then the newest. Sub-agents' sessions are reached through
 * their parents.
 */
export function sessionRows(sessions: readonly Summary[], now: number, current?: string): PickerRow[] {
  const rows = sessions.filter(({ parent }) => parent === undefined).map((one) => rowOf(one, now, current));
  return [...rows.filter(({ urgent }) => urgent), ...rows.filter(({ urgent }) => !urgent)];
}

function rowOf(one: Summary, now: number, current: string | undefined): PickerRow {
  const status = shownStatus(one);
  return {
    id: one.id,
    title: plainLine(one.title) || "(no title)",
    mark: [status === "idle" ? "" : status, one.id === current ? "here" : ""].filter((word) => word !== "").join(", "),
    detail: [one.cwd === undefined ? "" : folderWords(one.cwd, 30), ago(one.at, now), shortId(one.id)]
      .filter((word) => word !== "")
      .join(" · "),
    urgent: status === "interrupted" || status === "waiting" || status === "parked",
  };
}
