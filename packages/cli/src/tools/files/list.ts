import { relative } from "node:path";
import { assertNotOwn } from "../paths/own-store.ts";
import { realPath, shownPath } from "../paths/real-path.ts";
import { isSecret } from "../paths/secret-files.ts";
import { RESULT_CHARS_MAX } from "../results/result-text.ts";
import { describeSystemError } from "../results/system-errors.ts";
import type { FileContext } from "./context.ts";
import { notes, oneLine, walk } from "./walk.ts";

const ENTRIES_MAX = 1000;

export async function listFolder(
  { cwd, own, passOver = isSecret }: Pick<FileContext, "cwd" | "own" | "passOver">,
  input: { readonly path?: string | undefined },
  signal?: AbortSignal,
): Promise<string> {
  const root = realPath(cwd, input.path ?? ".");
  const shown = shownPath(cwd, root);
  assertNotOwn(own, root, shown);
  try {
    const walked = await walk(root, ENTRIES_MAX, { passOver, own, signal });
    const marks = { file: "", folder: "/", link: "@", other: "" };
    const names = walked.entries.map(({ path, kind }) => oneLine(relative(root, path)) + marks[kind]);
    let chars = 0;
    const fit = names.filter((name) => {
      chars += name.length + 1;
      return chars <= RESULT_CHARS_MAX;
    });
    const isCut = walked.isCut || fit.length < names.length;
    const said = [...(isCut ? [`only the first ${fit.length} are shown: list a subfolder`] : []), ...notes(walked)];
    const text = fit.length === 0 ? `[${shown} contains nothing to list.]` : fit.join("\n");
    return said.length === 0 ? text : `${text}\n[${said.join("; ")}.]`;
  } catch (error) {
    throw describeSystemError(error, shown);
  }
}
