import type { Change } from "./evidence/change.ts";
import type { Job } from "./evidence/job.ts";
import { plainPath } from "./evidence/path.ts";
import { delegateJob, isRepeatable, runJob } from "./kinds/command.ts";
import { countJob } from "./kinds/count.ts";
import { changeJob, lookJob, readJob } from "./kinds/files.ts";
import { renameJob } from "./kinds/rename.ts";
import { stepsJob } from "./kinds/steps.ts";
import { toolJob } from "./kinds/tool.ts";
import { helpText, sayJob, story, thinkThought } from "./kinds/words.ts";

/** What a prompt asks for. A prompt that is not understood is answered with a list of those that are. */
export function jobOf(prompt: string): Job {
  const text = prompt.trim().replace(/^please[,\s]+/i, "");
  return (
    parseDelegation(text) ??
    parsePlan(text) ??
    parseNumbered(text) ??
    single(text) ??
    lineByLine(text) ??
    sayJob("help", helpText(text))
  );
}

/** A single task. The forms are tried in this order. */
function single(text: string): Job | null {
  return (
    parseRename(text) ??
    parseCount(text) ??
    (changesOnLines(text) ? null : parseChange(text)) ??
    parseCommand(text) ??
    parseUse(text) ??
    told(text) ??
    thought(text) ??
    parseLook(text) ??
    read(text)
  );
}

/** Several lines, each of them a task. */
function lineByLine(text: string): Job | null {
  const lines = text.split("\n").filter((line) => line.trim() !== "");
  const jobs = lines.map((line) => single(line.trim()));
  return lines.length > 1 && jobs.every((job) => job !== null) ? stepsJob(jobs) : null;
}

/** Lines that follow "write a.txt:" are the file's content, unless each line is a task of its own. */
function changesOnLines(text: string): boolean {
  const lines = text.split("\n").filter((line) => line.trim() !== "");
  return lines.length > 1 && lines.every((line) => single(line.trim()) !== null);
}

function parseNumbered(text: string): Job | null {
  const steps = itemsOf(text);
  if (steps.length < 2) return null;
  return stepsJob(
    steps.map((step) => parseDelegation(step) ?? single(step) ?? sayJob(step, `I do not know how to do this: ${step}`)),
  );
}

/** "1. a 2. b", on one or several lines. Numbers must count up from 1, so that other numbers stay text. */
function itemsOf(text: string): string[] {
  const marks: { readonly start: number; readonly end: number }[] = [];
  for (const found of text.matchAll(/(^|[\s:;])(\d+)[.)]\s+/g)) {
    if (Number(found[2]) !== marks.length + 1) continue;
    marks.push({ start: found.index, end: found.index + found[0].length });
  }
  return marks.map(({ end }, index) =>
    text
      .slice(end, marks[index + 1]?.start ?? text.length)
      .trim()
      .replace(/[;,]$/, ""),
  );
}

function parseDelegation(text: string): Job | null {
  const found = /^delegate(?:\s+in parallel)?\s*:\s*([\s\S]+)$/i.exec(text);
  if (!found) return null;
  const items = itemsOf(found[1]!);
  const lines = found[1]!.split("\n").flatMap((line) => /^\s*[-*]\s+(.+)$/.exec(line)?.[1] ?? []);
  return delegateJob(items.length > 1 ? items : lines.length > 1 ? lines : [found[1]!.trim()]);
}

function parsePlan(text: string): Job | null {
  const found = /^plan:\s*([\s\S]+)$/i.exec(text);
  const steps = found ? itemsOf(found[1]!) : [];
  if (steps.length === 0) return null;
  // The first step is under way.
  return toolJob("plan", {
    steps: steps.map((content, at) => ({ content, status: at === 0 ? "in_progress" : "pending" })),
  });
}

function parseRename(text: string): Job | null {
  const [head] = /^(?:rename|replace)\s+/i.exec(text) ?? [];
  if (head === undefined) return null;
  const rest = withoutEnd(text.slice(head.length));
  const place = /(?<!\s)\s+in\s+(?:the\s+)?(?:folder\s+)?(\S+)$/i.exec(rest);
  const between = place && /(?<!\s)\s+(?:to|with|by)\s+/i.exec(rest.slice(0, place.index));
  if (!between) return null;
  const texts = [rest.slice(0, between.index), rest.slice(between.index + between[0].length, place.index)];
  if (texts.some((one) => one === "" || one.includes("\n"))) return null;
  const [old, name] = texts.map(bare) as [string, string];
  if (old === name) return sayJob("rename", `"${old}" and "${name}" are the same: there is nothing to do.`);
  return renameJob(old, name, path(place[1]!));
}

function parseCount(text: string): Job | null {
  const found =
    /^count (?:the |all )*(?:words|lines)(?: and (?:words|lines))? (?:in|of) (?:the )?(?:files in )?(?:folder )?(\S+)(?: (?:in)?to (\S+))?$/i.exec(
      collapseSpaces(text),
    );
  if (!found) return null;
  const folder = path(withoutEnd(found[1]!));
  const report = found[2] ? path(withoutEnd(found[2])) : folder === "." ? "word-count.md" : `${folder}/word-count.md`;
  return countJob(folder, report);
}

function parseChange(text: string): Job | null {
  const change = changeOf(text);
  return change && changeJob(change);
}

function changeOf(text: string): Change | null {
  const edited = quotedChange(text) ?? wordChange(text);
  if (edited) return edited;
  const written =
    /^(?:write|create)\s+(?:the\s+)?(?:file\s+)?(\S+?)(?::[ \t]*|\s+(?:with|saying):?\s+)([\s\S]*)$/i.exec(text);
  if (written) return { kind: "write", path: path(written[1]!), content: content(written[2]!) };
  const appended = /^append\s+(?:to\s+)?(\S+?):\s*/i.exec(text);
  const line = appended ? text.slice(appended[0].length) : "";
  return appended && line !== "" && !line.includes("\n")
    ? { kind: "append", path: path(appended[1]!), line: bare(line) }
    : null;
}

/**
 * "edit a.txt: replace "x" with "y"": the old text ends at the first quote that is followed by the new text, the new
 * text at the last quote.
 */
function quotedChange(text: string): Change | null {
  const head = /^(?:edit|in)\s+(\S+?):?\s+replace\s+(["'`])/i.exec(text);
  if (!head) return null;
  const rest = withoutEnd(text.slice(head[0].length));
  const between = new RegExp(`${head[2]}\\s+(?:with|by)\\s+(["'\`])`, "gi");
  for (const found of rest.matchAll(between)) {
    const start = found.index + found[0].length;
    if (found.index === 0 || start >= rest.length || !rest.endsWith(found[1]!)) continue;
    return { kind: "replace", path: path(head[1]!), old: rest.slice(0, found.index), new: rest.slice(start, -1) };
  }
  return null;
}

function wordChange(text: string): Change | null {
  const found = /^(?:edit|in) (\S+?):? replace (\S+) (?:with|by) (\S+)$/i.exec(collapseSpaces(text));
  return found && { kind: "replace", path: path(found[1]!), old: found[2]!, new: withoutEnd(found[3]!) };
}

function parseCommand(text: string): Job | null {
  const found = /^(?:run|execute)\b:?\s+([\s\S]+)$/i.exec(text);
  if (!found) return null;
  let rest = found[1]!.trim();
  const makes = /\(makes\s+(\S+)\)$/i.exec(rest);
  if (makes) rest = rest.slice(0, makes.index).trimEnd();
  const safe = /\(safe to repeat\)$/i.exec(rest);
  if (safe) rest = rest.slice(0, safe.index).trimEnd();
  const command = /^`([^`]+)`[.\s]*$/.exec(rest)?.[1] ?? rest;
  const repeatable = safe !== null || isRepeatable(command);
  return runJob(makes ? { command, repeatable, makes: path(makes[1]!) } : { command, repeatable });
}

function parseUse(text: string): Job | null {
  const [, name, given] = /^use\s+([\w-]+):\s*(\{[\s\S]*\})$/.exec(text) ?? [];
  try {
    return name === undefined ? null : toolJob(name, JSON.parse(given!) as Record<string, unknown>);
  } catch {
    return null;
  }
}

const LINES_MAX = 200_000;

function told(text: string): Job | null {
  if (!/\b(story|poem|essay|tale)\b/i.test(text)) return null;
  const size = /(?<![\d,_.])([\d,_.]*)(?<=\d[,_.]{0,3})[\s-]+(lines?|words?)\b/i.exec(text);
  const wanted = size ? Number(size[1]!.replace(/\D/g, "")) : 40;
  const count = Math.max(1, Math.min(wanted, LINES_MAX));
  const unit = size && /^word/i.test(size[2]!) ? "words" : "lines";
  return sayJob("tell a story", story(count, unit), `A story of ${count} ${unit}, then.`);
}

function thought(text: string): Job | null {
  const found = /^think\s+(?:hard\s+|long\s+)?(?:about|of|over)\s+([\s\S]+)$/i.exec(text);
  if (!found) return null;
  const about = found[1]!.replace(/\s+/g, " ").replace(/(?<![.?!])[.?!]+$/, "");
  return sayJob(
    "think",
    `I thought about ${about}. I am the offline model, so nothing came of it but the thinking.`,
    thinkThought(about),
  );
}

function parseLook(text: string): Job | null {
  const listed = /^(?:list|ls)(?:\.*| (?:the )?(?:files in )?(?:folder )?(\S+))$/i.exec(collapseSpaces(text));
  if (listed) {
    const folder = listed[1] ? path(withoutEnd(listed[1])) : ".";
    return lookJob(`list ${folder}`, { name: "list", input: { path: folder } });
  }
  const [head] = /^(?:search|grep|look)\s+(?:for\s+)?/i.exec(text) ?? [];
  if (head === undefined || /^look\s+at\b/i.test(text)) return null;
  const rest = withoutEnd(text.slice(head.length));
  const place = /(?<!\s)\s+in\s+(\S+)$/i.exec(rest);
  const words = place ? rest.slice(0, place.index) : rest;
  if (words === "" || words.includes("\n")) return null;
  const [pattern, folder] = [bare(words), place ? path(place[1]!) : "."];
  return lookJob(`search for ${pattern} in ${folder}`, { name: "search", input: { pattern, path: folder } });
}

function read(text: string): Job | null {
  const found = /^(?:read|show|open|cat|look\s+at|summari[sz]e)\s+(?:the\s+)?(?:files?\s+)?(.+?)$/is.exec(text);
  if (!found) return null;
  const words = found[1]!.split(/[\s,;]+|\band\b/).filter((word) => word !== "");
  const paths = words.map((word) => path(word.replace(/(?<![.?!])[.?!]+$/, "")));
  const isPaths = paths.every((one) => /[./\\]|^[A-Z]+$|^\w+$/.test(one));
  return paths.length > 0 && paths.length <= 200 && isPaths ? readJob([...new Set(paths)]) : null;
}

function path(text: string): string {
  return plainPath(bare(text));
}

/** Collapses white space to single spaces. A pattern with many variable gaps is very slow to fail. */
function collapseSpaces(text: string): string {
  return text.trim().replace(/\s+/g, " ");
}

/** Removes the full stop and blanks at the end, but keeps `.` and `..`. */
function withoutEnd(text: string): string {
  const trimmed = text.trimEnd();
  let end = trimmed.length;
  while (end > 0 && /[.\s]/.test(trimmed[end - 1]!)) end--;
  // A word of dots is a folder.
  if (end === 0 || /\s/.test(trimmed[end]!)) return trimmed;
  return trimmed.slice(0, end);
}

/** Removes surrounding quotes. */
function bare(text: string): string {
  return /^(["'`])([\s\S]+)\1$/.exec(text.trim())?.[2] ?? text.trim();
}

/** Removes the fence of a code block. On a single line, \n means a line break. */
function content(text: string): string {
  const fenced = /^\s*```[^\n]*\n([\s\S]*?)\n?```\s*$/.exec(text);
  if (fenced) return `${fenced[1]!}\n`;
  const plain = bare(text);
  return `${(plain.includes("\n") ? plain : plain.replaceAll("\\n", "\n")).replace(/\n$/, "")}\n`;
}
