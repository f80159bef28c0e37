import { join } from "node:path";
import { CommandError, EXIT } from "../exit.ts";
import { type Format, formatFor, writeOutput } from "../export/index.ts";
import { homeFolder } from "../home.ts";

/** `/export`: like the command, but without flags, and repeatable after each turn. Returns the path. */
export function makeExporter(
  read: (id: string, format: Format) => AsyncIterable<string>,
  home: () => string | null = homeFolder,
): (id: string, file: string | undefined) => Promise<string> {
  const write = async (id: string, path: string): Promise<string> => {
    await writeOutput(path, read(id, formatOf(path)));
    return path;
  };
  return async (id, file) => {
    if (file !== undefined) {
      return await write(id, file.startsWith("~/") ? join(homeOf(home), file.slice(2)) : file).catch(
        (error: unknown) => {
          throw isTaken(error) ? fileExists(file) : error;
        },
      );
    }
    for (let n = 1; ; n++) {
      const path = `holdfast-${id.slice(0, 13)}${n === 1 ? "" : `-${n}`}.md`;
      try {
        return await write(id, path);
      } catch (error) {
        if (!isTaken(error)) throw error;
      }
    }
  };
}

function homeOf(home: () => string | null): string {
  const found = home();
  if (found !== null) return found;
  throw new CommandError(
    EXIT.usage,
    "USAGE",
    "This user has no home folder: give an absolute path. Nothing was written.",
  );
}

function formatOf(path: string): ReturnType<typeof formatFor> {
  try {
    return formatFor(undefined, path);
  } catch (error) {
    const message = `Unknown format "${path.slice(-80)}". Use .md, .html or .jsonl. Nothing was written.`;
    throw new CommandError(EXIT.usage, "USAGE", message, error);
  }
}

function isTaken(error: unknown): boolean {
  return error instanceof CommandError && error.code === "OUTPUT_EXISTS";
}

function fileExists(file: string): CommandError {
  const message = `${file} already exists and was not touched. Give another name.`;
  return new CommandError(EXIT.usage, "OUTPUT_EXISTS", message);
}
