import { realpathSync } from "node:fs";
import { resolve } from "node:path";
import type { SpokenPart, Transfer, ModelPart as TransferPart, TransferStep } from "@holdfast/doctor";
import { idFrom, type Reading } from "holdfast";
import { type ModelPart, type Step, stepsOf } from "../export/dialects/steps.ts";
import { fileWords, isRaster } from "../export/dialects/writer.ts";
import { redactDeep } from "../export/redact.ts";
import { parsedJson } from "../transcript/shape.ts";

/** A session of Holdfast on its way to another agent. */

export interface Moved {
  readonly transfer: Transfer;
  readonly leftOut: readonly string[];
}

export interface MoveOptions {
  /** The target: a session that is moved twice to one agent, unchanged, is the same session there. */
  readonly to: string;
  readonly cwd: string | undefined;
  readonly redact: boolean;
  readonly at: number;
}

/** What the model would see, call by call. What was interrupted is closed there already, in the library's words. */
export function toTransfer(
  { messages, attributes, id }: Reading<unknown> & { readonly id: string },
  options: MoveOptions,
): Moved {
  const read = stepsOf(messages, attributes.dialect, { keepsParts: true });
  const steps = options.redact ? redactDeep(read) : read;
  const losses = new Losses();
  const moved = steps.flatMap((step) => losses.step(step));
  const cwd = realFolder(options.cwd ?? attributes.cwd ?? process.cwd());
  const { title = null } = attributes;
  const own = idFrom(`holdfast export ${options.to} ${id} ${cwd} ${JSON.stringify(moved)}`);
  return { transfer: { id: own, cwd, title, at: options.at, steps: moved }, leftOut: losses.words() };
}

/** Agents know a folder by its real path. One that is not there is named as it was given. */
function realFolder(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return resolve(path);
  }
}

class Losses {
  #system = 0;
  #files = 0;

  step(step: Step): TransferStep[] {
    if (step.kind === "system") {
      this.#system++;
      return [];
    }
    if (step.kind === "user") return [{ kind: "user", parts: step.parts.map((part) => this.#spoken(part)) }];
    const parts = step.parts.flatMap((part) => this.#model(part));
    return parts.length === 0 ? [] : [{ kind: "model", parts }];
  }

  words(): string[] {
    const counted = (count: number, one: string): string => `${count} ${one}${count === 1 ? "" : "s"}`;
    return [
      ...(this.#system > 0 ? [`${counted(this.#system, "system message")}: each agent has its own`] : []),
      ...(this.#files > 0 ? [`${counted(this.#files, "file")}: a note with the name stands in the place`] : []),
    ];
  }

  #spoken(part: Exclude<ModelPart, { type: "reasoning" | "call" }>): SpokenPart {
    if (part.type === "text") return { type: "text", text: part.text.toWellFormed() };
    const { mediaType, data } = part.file;
    if (data && isRaster(mediaType)) return { type: "image", mediaType, data };
    this.#files++;
    return { type: "text", text: fileWords(part.file).toWellFormed() };
  }

  #model(part: ModelPart): TransferPart[] {
    if (part.type === "reasoning" || part.type === "text")
      return part.text.trim() === "" ? [] : [{ type: part.type, text: part.text.toWellFormed() }];
    if (part.type === "file") return [{ type: "text", text: fileWords(part.file).toWellFormed() }];
    const { text, failed, files } = part.result;
    const said = this.#spoken({ type: "text", text });
    return [
      {
        type: "call",
        id: /^[\w-]{1,40}$/.test(part.id) ? part.id : `call_${idFrom(part.id).replaceAll("-", "")}`,
        name: part.name.replaceAll(/[^\w-]/g, "_").slice(0, 64),
        input: objectOf(part.input),
        result: { parts: [said, ...files.map((file) => this.#spoken({ type: "file", file }))], isError: failed },
      },
    ];
  }
}

/** Providers take an object only. */
function objectOf(input: unknown): Readonly<Record<string, unknown>> {
  const value = typeof input === "string" ? (parsedJson(input) ?? input) : input;
  return typeof value === "object" && value !== null && !Array.isArray(value)
    ? (value as Readonly<Record<string, unknown>>)
    : { input: value };
}
