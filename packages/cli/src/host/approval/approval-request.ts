import { Buffer } from "node:buffer";
import { homeFolder } from "../../home.ts";
import { visible, visibleLine } from "../../terminal/visible.ts";
import type { FileSnapshot, Target } from "../../tools/files/call-target.ts";
import { replaceText } from "../../tools/files/edit.ts";
import { decodedExactly } from "../../tools/files/text-file.ts";
import type { ApprovalChoice, PermissionAsk, ShownPart } from "../host.ts";

/** The approval request, worded the same on every surface. */

/** A call that needs a person's decision. */
export interface Question {
  readonly call: string;
  readonly name: string;
  readonly input: unknown;
  readonly summary: string;
  /** Null if no rule can allow this call. */
  readonly rule: string | null;
}

/** The approval request: the whole input, the real path, and what is there now. `project`: see ProjectRules. */
export function describeApproval(
  question: Question,
  { cwd, project }: { readonly cwd: string; readonly project: string | null },
  seen: FileSnapshot,
): PermissionAsk {
  const { path, target, digest } = seen;
  const always = alwaysWords(question);
  const facts = [...factsOf(question, cwd, seen), { kind: "fact", label: '"always" allows', text: always } as const];
  // The most important part comes first: a small window shows little more.
  const parts = question.name === "shell" ? [...inputParts(question), ...facts] : [...facts, ...inputParts(question)];
  return { ...question, cwd, path, target, digest, parts, always, choices: choicesFor(question, project) };
}

/** The same for several calls. */
export async function describeApprovals(
  questions: readonly Question[],
  agent: {
    readonly cwd: string;
    readonly project: string | null;
    readonly approvals: { look(question: Question): Promise<FileSnapshot> };
  },
): Promise<PermissionAsk[]> {
  const { cwd, project } = agent;
  const asks: PermissionAsk[] = [];
  for (const question of questions)
    asks.push(describeApproval(question, { cwd, project }, await agent.approvals.look(question)));
  return asks;
}

/** The same request, asked by a sub-agent with this task. Its call ids may be those of another agent. */
export function askedBelow(ask: PermissionAsk, call: string, session: string, task: string): PermissionAsk {
  const by: ShownPart = { kind: "fact", label: "for the task", text: visibleLine(task) };
  return { ...ask, call, agent: { session, call: ask.call, task }, parts: [...ask.parts, by] };
}

/** The question itself, on one line. */
export function questionWords({ name, agent }: Pick<PermissionAsk, "name" | "agent">): string {
  return `Allow ${visibleLine(name)}${agent ? " to a sub-agent" : ""}?`;
}

/** The answers, in this order everywhere. Without a rule that would help there is no "always". */
function choicesFor({ rule }: Question, project: string | null): ApprovalChoice[] {
  const always: ApprovalChoice[] = [
    { key: "a", word: "always", label: "always in this session", answer: "always" },
    ...(project === null
      ? []
      : [
          {
            key: "p",
            word: "project",
            label: `always in this project (${shownFolder(project)})`,
            answer: "project",
          } as const,
        ]),
  ];
  return [
    { key: "y", word: "yes", label: "allow once", answer: "allow" },
    ...(rule === null ? [] : always),
    { key: "n", word: "no", label: "deny", answer: "deny", isDefault: true },
    { key: "t", word: "tell", label: "deny, and tell it why", answer: "deny", asksWhy: true },
  ];
}

/** Shows more of the request, on surfaces that cut it. */
export const VIEW = { key: "v", word: "view", label: "view the full request" } as const;

function shownFolder(path: string): string {
  const home = homeFolder();
  const isBelow = home !== null && (path === home || path.startsWith(`${home}/`));
  return visibleLine(isBelow ? `~${path.slice(home.length)}` : path);
}

/** A long rule would just repeat the call. */
function alwaysWords({ name, rule }: Question): string {
  if (rule === null) return "nothing: you are asked about this call every time";
  // A rule without a pattern covers more than this call.
  if (!rule.includes("(")) return `every call of ${visibleLine(name)}`;
  const shown = visibleLine(rule);
  if (shown.length <= RULE_CHARS_MAX) return shown;
  return `exactly this ${name === "shell" ? "command" : `${visibleLine(name)} call`}`;
}

const RULE_CHARS_MAX = 60;

function factsOf({ name, input }: Question, cwd: string, { path, target, bytes }: FileSnapshot): ShownPart[] {
  const fact = (label: string, text: string): ShownPart => ({ kind: "fact", label, text: visibleLine(text) });
  if (name === "shell") return [fact("runs in", path ?? cwd)];
  if (path === null) return target.kind === "unknown" ? [fact("unknown path", target.why)] : [];
  const facts = [fact("real path", path)];
  if (target.kind === "unknown") facts.push(fact("cannot be inspected", target.why));
  if (name === "write") facts.push(fact("file", targetWords(target)), ...sizeFact(input));
  if (name === "edit") facts.push(fact("place", placeWords(target, bytes, input)));
  return facts;
}

function targetWords(target: Target): string {
  switch (target.kind) {
    case "none":
      return "new";
    case "file":
      return `replaces the existing file (${countWords(target.bytes ?? 0, "byte")})`;
    case "folder":
      return "is a folder: the call would fail";
    case "other":
      return "is a device, pipe or socket: the call would fail";
    case "unknown":
      return "unknown";
  }
}

function sizeFact(input: unknown): ShownPart[] {
  const content = memberOf(input, "content");
  if (typeof content !== "string") return [];
  const text = `${countWords(linesOf(content).length, "line")}, ${countWords(Buffer.byteLength(content), "byte")}`;
  return [{ kind: "fact", label: "size", text }];
}

/** Where the old text is, or why the edit would fail. */
function placeWords(target: Target, bytes: Buffer | null, input: unknown): string {
  const [old, fresh, all] = [memberOf(input, "old"), memberOf(input, "new"), memberOf(input, "all")];
  if (typeof old !== "string" || typeof fresh !== "string") return "unknown";
  const text = bytes && decodedExactly(bytes);
  if (text === null) return target.kind === "none" ? "the file does not exist: the call would fail" : "unknown";
  try {
    const { line, places } = replaceText(text, { old, new: fresh, all: all === true }, "the file");
    return places === 1 ? `line ${line}` : `${places} places, the first on line ${line}`;
  } catch (error) {
    if (error instanceof Error) return `the call would fail: ${error.message}`;
    throw error;
  }
}

/** Every member of the input, known to the tool or not; long ones last. */
function inputParts({ name, input }: Question): ShownPart[] {
  if (typeof input !== "object" || input === null || Array.isArray(input)) return [jsonPart("input", input)];
  const { old, new: fresh, ...rest } = input as Record<string, unknown>;
  const isDiff = name === "edit" && typeof old === "string" && typeof fresh === "string";
  const members = Object.entries(isDiff ? rest : input).filter(([, value]) => value !== undefined);
  const parts = members.map(
    ([member, value]): ShownPart =>
      typeof value === "string"
        ? { kind: "text", label: visibleLine(member), text: visible(value) }
        : jsonPart(visibleLine(member), value),
  );
  if (isDiff) parts.push({ kind: "diff", label: "change", text: diffOf(old, fresh) });
  const short = parts.filter((part) => !isBlock(part));
  return [...short, ...parts.filter(isBlock)];
}

function jsonPart(label: string, value: unknown): ShownPart {
  return { kind: "json", label, text: visible(JSON.stringify(value, null, 2) ?? "undefined") };
}

/** The complete old and new text: common lines at the start and end, and the difference between them. */
function diffOf(old: string, fresh: string): string {
  const before = linesOf(old);
  const after = linesOf(fresh);
  let start = 0;
  while (start < before.length && start < after.length && before[start] === after[start]) start += 1;
  let end = 0;
  const most = Math.min(before.length, after.length) - start;
  while (end < most && before.at(-1 - end) === after.at(-1 - end)) end += 1;
  const marked = (mark: string, lines: readonly string[]): string[] =>
    lines.map((one) => `${mark} ${visible(one).replace(/\n$/u, "")}`);
  return [
    ...marked(" ", before.slice(0, start)),
    ...marked("-", before.slice(start, before.length - end)),
    ...marked("+", after.slice(start, after.length - end)),
    ...marked(" ", before.slice(before.length - end)),
  ].join("\n");
}

/** Lines with their line ends; none for an empty text. */
function linesOf(text: string): string[] {
  return text.match(/[^\n]*\n|[^\n]+$/gu) ?? [];
}

/** One line of a request, as shown. */
export interface ShownLine {
  readonly label: string;
  readonly text: string;
  readonly kind: "short" | "title" | "block" | "added" | "removed";
}

/** All lines of a request: a label and a text, or a label with the lines of its text below it. */
export function approvalLines({ parts }: Pick<PermissionAsk, "parts">): ShownLine[] {
  return parts.flatMap((part): ShownLine[] => {
    const { label, text } = part;
    if (!isBlock(part)) return [{ label, text, kind: "short" }];
    // The mark shows the last line end; a blank row after it would not be part of the text.
    const rows = text
      .replace(/\n$/u, "")
      .split("\n")
      .map((row): ShownLine => {
        const mark = part.kind === "diff" ? row[0] : " ";
        return { label: "", text: row, kind: mark === "+" ? "added" : mark === "-" ? "removed" : "block" };
      });
    return [{ label, text: "", kind: "title" }, ...rows];
  });
}

function isBlock({ kind, text }: ShownPart): boolean {
  return kind === "diff" || text.includes("\n");
}

/** One such line, without styles. */
export function lineWords({ label, text, kind }: ShownLine): string {
  return kind === "short" ? `  ${label}: ${text}` : kind === "title" ? `  ${label}:` : `  │ ${text}`;
}

function memberOf(input: unknown, member: string): unknown {
  return typeof input === "object" && input !== null ? (input as Record<string, unknown>)[member] : undefined;
}

function countWords(count: number, unit: string): string {
  return `${count} ${unit}${count === 1 ? "" : "s"}`;
}
