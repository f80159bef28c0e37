import type { ShownFile } from "../../transcript/item.ts";
import type { ModelCall, ModelPart, SpokenPart } from "./steps.ts";

/** A part of a message to write. */
export type Block = { readonly [member: string]: unknown };

/**
 * How a step is written in a dialect. The dialect's own `arrange` takes care of the provider's rules for order, ids and
 * empty messages.
 */
export interface Writer {
  user(parts: readonly SpokenPart[]): unknown[];
  /**
   * Without it, the text gets the user's role: not every model of that provider accepts a system message within a
   * conversation.
   */
  system?(text: string): unknown[];
  model(parts: readonly ModelPart[]): unknown[];
  results(calls: readonly ModelCall[]): unknown[];
}

export const callsIn = (parts: readonly ModelPart[]): ModelCall[] =>
  parts.filter((part): part is ModelCall => part.type === "call");

/** Tool input for an API that expects JSON text. Text is kept: it may be truncated JSON. */
export const inputText = (input: unknown): string => (typeof input === "string" ? input : JSON.stringify(input));

/** Replaces a file that a provider would refuse. */
export function fileWords({ mediaType, name, bytes, url }: ShownFile): string {
  const size = bytes === undefined ? "" : `, ${bytes} bytes`;
  return `[File${name ? ` ${name}` : ""}: ${mediaType}${size}${url ? `, ${url}` : ""}]`;
}

export const isWeb = (url: string | undefined): url is string => url !== undefined && /^https?:\/\//i.test(url);

/** Image types that all providers accept. */
export const isRaster = (type: string): boolean => /^image\/(png|jpeg|gif|webp)$/.test(type);

export const dataUrl = ({ mediaType, data }: ShownFile): string => `data:${mediaType};base64,${data}`;

export const textIn = ({ data }: ShownFile): string => Buffer.from(data ?? "", "base64").toString();

/** The text of a result for an API that has no mark for an error. */
export function markedText({ text, failed }: ModelCall["result"]): string {
  if (!failed || /^Error\b/.test(text)) return text;
  return `Error: ${text.trim() === "" ? "failed without a message" : text}`;
}
