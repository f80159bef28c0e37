import type { SessionRecord } from "../contract/record.ts";
import { fieldsOf, listIn, textIn } from "../contract/shapes.ts";

/** What of a record is shown in a list, and found by a search. */

const DEPTH_MAX = 8;

/** What people and the model said in it. */
export function saidIn({ units }: SessionRecord): string {
  const texts = units.flatMap((unit) =>
    unit.type === "user" || unit.type === "assistant" ? [textOf(unit.content)] : [],
  );
  return texts.length === 1 ? texts[0]! : texts.filter((text) => text !== "").join("\n");
}

/** The first words of the user in it; null if there are none. */
export function promptIn({ units }: SessionRecord): string | null {
  for (const unit of units) {
    if (unit.type !== "user") continue;
    const text = textOf(unit.content).replace(WRAPPER, "").trim();
    if (text !== "" && !FROM_PROGRAM.test(text)) return text;
  }
  return null;
}

/** What Cline puts around a prompt. */
const WRAPPER = /^\s*<user_input[^>]*>|<\/user_input>\s*$/g;
/** What programs put in front of the first prompt: the state of the machine, their own instructions. */
const FROM_PROGRAM = /^(?:<[\w-]+>|# AGENTS\.md\b|Caveat: )/;

/** The folder in which the agent worked, where its records name it. */
export function folderIn({ value }: SessionRecord): string | null {
  const fields = fieldsOf(value);
  const inner = [fields, fieldsOf(fields["payload"]), fieldsOf(fields["data"])];
  for (const each of [...inner, ...inner.map(({ context }) => fieldsOf(context))]) {
    const folder = textIn(each["cwd"]) ?? textIn(each["workdir"]);
    if (folder !== null && folder !== "") return folder;
  }
  return null;
}

function textOf(content: unknown, depth = 0): string {
  if (typeof content === "string") return content;
  if (depth === DEPTH_MAX) return "";
  if (Array.isArray(content))
    return listIn(content)
      .map((part) => textOf(part, depth + 1))
      .filter((text) => text !== "")
      .join("\n");
  const { text } = fieldsOf(content);
  return typeof text === "string" ? text : "";
}
