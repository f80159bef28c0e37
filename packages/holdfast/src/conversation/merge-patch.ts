import type { Metadata } from "../dialects/dialect.ts";
import type { Json } from "../journal/record.ts";

/** JSON merge patch (RFC 7396): null removes a member, objects are merged, anything else replaces. */
export function mergePatch(metadata: Metadata, patch: Metadata): Metadata {
  return mergeValue(metadata as Json, patch as Json) as Metadata;
}

function mergeValue(target: Json | undefined, patch: Json): Json {
  if (!isObject(patch)) return patch;
  const result = new Map<string, Json>(isObject(target) ? (Object.entries(target) as [string, Json][]) : []);
  for (const [name, change] of Object.entries(patch)) {
    if (change === undefined) continue;
    if (change === null) result.delete(name);
    else result.set(name, mergeValue(result.get(name), change));
  }
  return Object.fromEntries(result);
}

function isObject(value: Json | undefined): value is { readonly [k: string]: Json | undefined } {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
