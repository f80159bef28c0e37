import { HoldfastError } from "../errors.ts";
import { ATTRIBUTE_CHARS_MAX, LABELS_CHARS_MAX } from "./summary-row.ts";
import type { CreateOptions } from "./surface.ts";

type Attributes = Pick<CreateOptions<unknown>, "title" | "cwd" | "app" | "labels" | "parent">;

/**
 * Throws ATTRIBUTE_INVALID { member } for attributes that no list could show or find, whatever the compiler has let through: what is taken is kept, and what cannot be kept is refused.
 */
export function checkAttributes({ title, cwd, app, labels, parent }: Attributes): void {
  if (title !== undefined && typeof title !== "string") throw invalid("title", "it is not a string");
  if (app !== undefined) assertShort("app", app);
  if (cwd !== undefined) {
    assertShort("cwd", cwd);
    if (cwd === "" || cwd.includes("\0")) throw invalid("cwd", "it names no folder");
  }
  if (parent !== undefined) {
    if (typeof parent !== "object" || parent === null) throw invalid("parent", "it is not an object with a session");
    assertShort("parent.session", parent.session);
    if (parent.call !== undefined) assertShort("parent.call", parent.call);
  }
  if (labels !== undefined) checkLabels(labels);
}

function checkLabels(labels: unknown): void {
  if (typeof labels !== "object" || labels === null || Array.isArray(labels))
    throw invalid("labels", "it is not an object of strings");
  let chars = 0;
  for (const [name, value] of Object.entries(labels)) {
    if (typeof value !== "string") throw invalid(`labels.${name.slice(0, 40)}`, "it is not a string");
    chars += name.length + value.length;
  }
  if (chars > LABELS_CHARS_MAX)
    throw invalid("labels", `they have ${chars} characters together, and the limit is ${LABELS_CHARS_MAX}`);
}

function assertShort(member: string, value: unknown): asserts value is string {
  if (typeof value !== "string") throw invalid(member, "it is not a string");
  if (value.length > ATTRIBUTE_CHARS_MAX)
    throw invalid(member, `it has ${value.length} characters, and the limit is ${ATTRIBUTE_CHARS_MAX}`);
}

function invalid(member: string, why: string): HoldfastError {
  const message = `No session was created: "${member}" cannot be kept: ${why}. Nothing was touched. Correct it, or leave it out.`;
  return new HoldfastError("ATTRIBUTE_INVALID", message, { member });
}
