import { ATTRIBUTE_CHARS_MAX, LABELS_CHARS_MAX, type Link } from "../conversation/records/attributes.ts";
import type { SessionAttributes } from "../conversation/records/records.ts";
import { HoldfastError } from "../errors.ts";
import { snapshot } from "../journal/lines/plain.ts";
import { found } from "./admit.ts";

interface AttributesInput {
  readonly title?: string;
  readonly cwd?: string;
  readonly app?: string;
  readonly labels?: Record<string, string>;
  readonly parent?: Link;
}

/** Every epoch repeats the title. Lists show only the beginning of a long one. */
const GIVEN_TITLE_CHARS_MAX = 64 * 1024;

/** What happens to texts from the application: redaction, and resolving a folder's real path. */
export interface TextRules {
  text(text: string): string;
  path(path: string): string;
}

/**
 * The attributes that an application gives a session, copied during the call (R19). Refuses any attribute that no list
 * could show or find, even if it compiled, so that everything accepted is kept. Throws ATTRIBUTE_INVALID { member },
 * RECORD_NOT_JSON.
 */
export function admitAttributes(given: AttributesInput, clean: TextRules): Omit<SessionAttributes, "kind"> {
  const { title, cwd, app, labels, parent } = given;
  return {
    ...(app === undefined ? {} : { app: textOf("app", app) }),
    ...(title === undefined ? {} : { title: clean.text(titleOf(title)) }),
    ...(cwd === undefined ? {} : { cwd: clean.path(folderOf(cwd)) }),
    ...(labels === undefined ? {} : { labels: labelsOf(labels, clean) }),
    ...(parent === undefined ? {} : { parent: parentOf(parent) }),
  };
}

/** Throws ATTRIBUTE_INVALID. */
export function titleOf(title: unknown): string {
  return textOf("title", title, GIVEN_TITLE_CHARS_MAX);
}

function textOf(member: string, value: unknown, charsMax = ATTRIBUTE_CHARS_MAX): string {
  if (typeof value !== "string") throw invalid(member, `it must be a string, not ${found(value)}`);
  if (value.length > charsMax) throw tooLong(member, value.length, charsMax);
  return value;
}

function folderOf(cwd: unknown): string {
  const path = textOf("cwd", cwd);
  if (path === "" || path.includes("\0")) throw invalid("cwd", "it names no folder");
  return path;
}

/** Measured after redaction, which can make them longer. */
function labelsOf(given: unknown, clean: TextRules): Record<string, string> {
  const labels: unknown = snapshot(given, "labels");
  if (typeof labels !== "object" || labels === null || Array.isArray(labels)) {
    throw invalid("labels", `it must be an object of strings, not ${found(given)}`);
  }
  let chars = 0;
  const entries = Object.entries(labels).map(([name, value]): [string, string] => {
    if (typeof value !== "string")
      throw invalid(`labels.${name.slice(0, 40)}`, `it must be a string, not ${found(value)}`);
    const kept = clean.text(value);
    chars += name.length + kept.length;
    return [name, kept];
  });
  if (chars > LABELS_CHARS_MAX) throw tooLong("labels", chars, LABELS_CHARS_MAX);
  return Object.fromEntries(entries);
}

function parentOf(given: unknown): { session: string; call?: string } {
  const parent: unknown = snapshot(given, "parent");
  if (typeof parent !== "object" || parent === null) throw invalid("parent", "it must be an object with a session");
  const { session, call } = parent as { session?: unknown; call?: unknown };
  return {
    session: textOf("parent.session", session),
    ...(call === undefined ? {} : { call: textOf("parent.call", call) }),
  };
}

function tooLong(member: string, chars: number, charsMax: number): HoldfastError {
  return invalid(member, `it has ${chars} characters, and the limit is ${charsMax}`, { limitChars: charsMax });
}

function invalid(member: string, why: string, facts: { limitChars?: number } = {}): HoldfastError {
  const message = `Nothing was recorded: "${member}" is not valid: ${why}. Nothing was changed. Correct it, or leave it out.`;
  return new HoldfastError("ATTRIBUTE_INVALID", message, { member, ...facts });
}
