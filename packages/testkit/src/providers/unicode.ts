import type { Add } from "./violation.ts";

/**
 * Every text of a request, and every member name, is well-formed Unicode without NUL. The API's JSON parser rejects
 * half of a surrogate pair ("no low surrogate in string"), and a NUL ends the text early in servers written in C.
 */
export function checkUnicode<Rule extends string>(request: unknown, rule: Rule, add: Add<Rule>): void {
  const open: [value: unknown, at: string][] = [[request, ""]];
  for (let next = open.pop(); next; next = open.pop()) {
    const [value, at] = next;
    if (typeof value === "string") checkText(value, at, rule, add);
    if (typeof value !== "object" || value === null || ArrayBuffer.isView(value)) continue;
    for (const [name, member] of Object.entries(value)) {
      const place = at === "" ? name : `${at}.${name}`;
      if (!Array.isArray(value)) checkText(name, `the name of ${place}`, rule, add);
      open.push([member, place]);
    }
  }
}

function checkText<Rule extends string>(text: string, at: string, rule: Rule, add: Add<Rule>): void {
  if (!text.isWellFormed()) add(rule, at, "half of a surrogate pair is not Unicode: the body is not valid JSON");
  if (text.includes("\0")) add(rule, at, "a NUL ends the text for servers that are written in C");
}
