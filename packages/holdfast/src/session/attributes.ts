import { snapshot } from "../journal/plain.ts";
import { found } from "./intake.ts";
import type { SessionAttributes } from "./records.ts";
import { invalid } from "./refusals.ts";
import type { CreateOptions } from "./surface.ts";

type Given = Partial<Pick<CreateOptions<unknown>, "title" | "cwd" | "app" | "labels" | "parent">>;

/** The row for lists holds the labels, and is written with every turn: what is in them costs that much each time (P7). In characters of their JSON. */
export const LABELS_CHARS_MAX = 8 * 1024;
/** These stand in the row, too. */
const NAME_CHARS_MAX = 1024;
const PATH_CHARS_MAX = 8 * 1024;
/** A title is carried into every epoch. Of a longer one, lists show the beginning. */
export const TITLE_CHARS_MAX = 64 * 1024;

/** What is done to texts that an application gives: redaction, and the real path of a folder. */
export interface Cleaning {
  text(text: string): string;
  path(path: string): string;
}

/** The attributes that an application gives to a session, as they were then (R19). Throws RECORD_INVALID, RECORD_NOT_JSON. */
export function attributesGiven(given: Given, clean: Cleaning): Omit<SessionAttributes, "kind"> {
  const { title, cwd, app, labels, parent } = given;
  return {
    ...(app === undefined ? {} : { app: textOf("app", app, NAME_CHARS_MAX) }),
    ...(title === undefined ? {} : { title: clean.text(textOf("title", title, TITLE_CHARS_MAX)) }),
    ...(cwd === undefined ? {} : { cwd: clean.path(textOf("cwd", cwd, PATH_CHARS_MAX)) }),
    ...(labels === undefined ? {} : { labels: labelsOf(labels, clean) }),
    ...(parent === undefined ? {} : { parent: parentOf(parent) }),
  };
}

export function textOf(name: string, value: unknown, charsMax: number): string {
  if (typeof value !== "string") throw invalid(`${name} is a text, and not ${found(value)}`);
  if (value.length <= charsMax) return value;
  throw invalid(`${name} has ${value.length} characters, and at most ${charsMax} are taken`, { limitChars: charsMax });
}

function labelsOf(given: unknown, clean: Cleaning): Record<string, string> {
  const labels: unknown = snapshot(given, "labels");
  if (typeof labels !== "object" || labels === null || Array.isArray(labels)) {
    throw invalid(`labels are an object of texts, and not ${found(given)}`);
  }
  const entries = Object.entries(labels).map(([name, value]) => {
    if (typeof value !== "string")
      throw invalid(`the label ${JSON.stringify(name.slice(0, 80))} is a text, and not ${found(value)}`);
    return [name, clean.text(value)];
  });
  const clear = Object.fromEntries(entries) as Record<string, string>;
  const chars = JSON.stringify(clear).length;
  if (chars <= LABELS_CHARS_MAX) return clear;
  const why = `the labels take ${chars} characters of JSON, and at most ${LABELS_CHARS_MAX} are taken: lists are made from them, and they are written again with every turn. Keep what is longer in a note`;
  throw invalid(why, { limitChars: LABELS_CHARS_MAX });
}

function parentOf(given: unknown): { session: string; call?: string } {
  const { session, call } = (snapshot(given, "parent") ?? {}) as { session?: unknown; call?: unknown };
  return {
    session: textOf("parent.session", session, NAME_CHARS_MAX),
    ...(call === undefined ? {} : { call: textOf("parent.call", call, NAME_CHARS_MAX) }),
  };
}
