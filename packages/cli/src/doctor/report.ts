import type { Diagnosis, Problem } from "@holdfast/doctor";
import { credentials } from "holdfast";
import type { Paint } from "../terminal/colour.ts";
import { plainLine } from "../terminal/plain.ts";

/** What the doctor found, as lines for people and as JSON. */

/** How many places of one kind of problem are shown. */
const PLACES_MAX = 3;

/** Why a session was not repaired whose user was asked. */
export const DECLINED = "you said no";

export interface SessionReport {
  /** Null if it is not known whose the file is. */
  readonly agent: string | null;
  readonly session: string | null;
  readonly path: string;
  readonly diagnosis: Diagnosis | null;
  readonly problems: readonly Problem[];
  /** How many texts look like a credential, by kind, if that was asked for. It is no problem of the session. */
  readonly secrets?: ReadonlyMap<string, number>;
}

export function reportLines(report: SessionReport, paint: Paint): string[] {
  const { agent, session, path, diagnosis, problems } = report;
  const isHealthy = problems.length === 0;
  const health = isHealthy ? paint("good", "healthy".padEnd(9)) : paint("bad", "damaged".padEnd(9));
  const title = diagnosis?.title ? `  ${plainLine(credentials(diagnosis.title))}` : "";
  const name = plainLine(`${agent ?? "unknown"}  ${session ?? ""}`);
  const lines = [`${health} ${name}${title}`, `          ${paint("faint", plainLine(path))}`];
  if (report.secrets && report.secrets.size > 0) lines.push(`          ${secretWords(report.secrets)}`);
  if (isHealthy) return lines;
  if (diagnosis) lines.push(`          ${readableWords(diagnosis)}`);
  for (const [kind, group] of Map.groupBy(problems, (problem) => problem.kind)) {
    const [first] = group;
    lines.push(`  ${paint("warning", kind)}: ${plainLine(first!.means)}`);
    for (const problem of group.slice(0, PLACES_MAX)) lines.push(`    ${whereWords(problem, path)}`);
    if (group.length > PLACES_MAX) lines.push(`    and ${group.length - PLACES_MAX} more`);
    lines.push(`    fix: ${plainLine(first!.fix)}`);
  }
  return lines;
}

function secretWords(secrets: ReadonlyMap<string, number>): string {
  const total = [...secrets.values()].reduce((sum, count) => sum + count, 0);
  const kinds = [...secrets].map(([kind, count]) => `${count} ${kind}`);
  return `${counted(total, "text looks", "texts look")} like a credential: ${kinds.join(", ")}.`;
}

function readableWords({ records, callsInterrupted }: Diagnosis): string {
  const readable = records.intact + records.recovered;
  const parts = [`${counted(readable, "record")} readable`];
  if (records.partial > 0) parts.push(`${records.partial} in part`);
  if (records.unreadable > 0) parts.push(`${counted(records.unreadable, "stretch", "stretches")} unreadable`);
  if (callsInterrupted > 0) parts.push(`${counted(callsInterrupted, "call")} interrupted at the end`);
  return `${parts.join(", ")}.`;
}

export const counted = (count: number, one: string, many = `${one}s`): string => `${count} ${count === 1 ? one : many}`;

function whereWords({ place, detail }: Problem, path: string): string {
  const { file, line, offset, row } = place;
  const parts = [];
  if (line !== null) parts.push(`line ${line}`);
  if (offset !== null) parts.push(`byte ${offset}`);
  if (row) parts.push(`row ${row.id} of ${row.table}`);
  if (file !== path) parts.push(`of ${file}`);
  const where = parts.length > 0 ? parts.join(", ") : "the file";
  return plainLine(detail === undefined ? where : `${where}: ${detail}`);
}

/** The one object that `--json` prints. */
export function reportJson(reports: readonly SessionReport[]): object {
  return {
    sessions: reports.map(({ agent, session, path, diagnosis, problems, secrets }) => ({
      ...{ agent, session, path, healthy: problems.length === 0 },
      ...(secrets && { secrets: Object.fromEntries(secrets) }),
      ...(diagnosis && {
        title: diagnosis.title,
        records: diagnosis.records,
        units: diagnosis.units,
        callsInterrupted: diagnosis.callsInterrupted,
        problemsLeftOut: diagnosis.problemsLeftOut,
      }),
    })),
    problems: reports.flatMap(({ agent, session, problems }) =>
      problems.map(({ kind, place, means, fix, detail }) => ({
        ...{ session, agent, kind, file: place.file, line: place.line, offset: place.offset },
        ...(place.row && { row: place.row }),
        ...(detail !== undefined && { detail }),
        ...{ means, fix },
      })),
    ),
  };
}

/** `repaired`: how many of the damaged ones are healthy now. */
export function sumWords(reports: readonly { readonly problems: readonly Problem[] }[], repaired: number): string {
  const damaged = reports.filter(({ problems }) => problems.length > 0).length;
  const total = reports.length;
  const parts = [`${total - damaged} healthy`, `${damaged - repaired} damaged`];
  if (repaired > 0) parts.splice(1, 0, `${repaired} repaired`);
  return `${counted(total, "session")}: ${parts.join(", ")}.`;
}
