/** Months, by which `lines` is partitioned: ids are UUIDv7, which begin with the time. Pure. */

/** The first instant (UTC) of the month of a time, or of a month `ahead` of it. */
export function monthOf(ms: number, ahead = 0): number {
  const date = new Date(ms);
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + ahead);
}

/** The ids created in a month: from its first id to the first id of the next month. */
export function rangeOf(month: number): { readonly from: string; readonly to: string } {
  return { from: firstId(month), to: firstId(monthOf(month, 1)) };
}

/** `lines_2026_11` */
export function partitionName(month: number): string {
  return `lines_${new Date(month).toISOString().slice(0, 7).replace("-", "_")}`;
}

/** The month of a partition by its name; null if the partition is not ours. */
export function monthNamed(name: string): number | null {
  const [, year, month] = /^lines_(\d{4})_(\d\d)$/.exec(name) ?? [];
  return year === undefined ? null : Date.UTC(Number(year), Number(month) - 1);
}

/** The month in which a session with this id was created. */
export function monthOfId(id: string): number {
  return monthOf(Number.parseInt(id.replaceAll("-", "").slice(0, 12), 16));
}

/** Whether it is a UUIDv7. */
export function startsWithTime(id: string): boolean {
  return id[14] === "7";
}

/** The smallest UUID that begins with this time. */
function firstId(ms: number): string {
  const hex = ms.toString(16).padStart(12, "0");
  return `${hex.slice(0, 8)}-${hex.slice(8)}-0000-0000-000000000000`;
}
