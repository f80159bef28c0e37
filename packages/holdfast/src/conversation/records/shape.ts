import { isTime } from "../../journal/record.ts";

/**
 * Reads a member: the value itself, a usable part of it, or undefined if none is. It assumes nothing about what is in a
 * journal.
 */
export type Clean = (value: unknown) => unknown;

type Members = { readonly [member: string]: Clean };

export const text: Clean = (value) => (typeof value === "string" ? value : undefined);
/** In the form of `at`, so that times compare as texts. */
export const time: Clean = (value) => (isTime(value) ? value : undefined);
export const number: Clean = (value) => (typeof value === "number" && Number.isFinite(value) ? value : undefined);
export const flag: Clean = (value) => (value === true ? true : undefined);
export const some: Clean = (value) => value;
export const object: Clean = (value) => (isObject(value) ? value : undefined);

export function only(expected: unknown): Clean {
  return (value) => (value === expected ? value : undefined);
}

/** The usable items of a list. */
export function list(item: Clean): Clean {
  return (value) => {
    if (!Array.isArray(value)) return undefined;
    let isSame = true;
    const clean: unknown[] = [];
    for (const one of value) {
      const kept = item(one);
      isSame &&= kept === one && kept !== undefined;
      if (kept !== undefined) clean.push(kept);
    }
    return isSame ? value : clean;
  };
}

/** The usable members of an object with arbitrary names. */
export function record(member: Clean): Clean {
  return (value) => {
    if (!isObject(value)) return undefined;
    const entries = Object.entries(value);
    const kept = entries.filter(([, one]) => member(one) === one && one !== undefined);
    return kept.length === entries.length ? value : Object.fromEntries(kept);
  };
}

/** An object that is unusable without its required members. Other members stay unchanged. */
export function shape(required: Members, optional: Members = {}): Clean {
  // Every record passes here, and iterating arrays of keys is faster than destructuring pairs.
  const needed = Object.keys(required);
  const possible = Object.keys(optional);
  const neededCleans = Object.values(required);
  const possibleCleans = Object.values(optional);
  return (value) => {
    if (!isObject(value)) return undefined;
    let changed: { [member: string]: unknown } | null = null;
    for (let i = 0; i < needed.length; i++) {
      const name = needed[i]!;
      const found = value[name];
      const kept = neededCleans[i]!(found);
      if (kept === undefined) return undefined;
      if (kept === found) continue;
      changed ??= { ...value };
      changed[name] = kept;
    }
    for (let i = 0; i < possible.length; i++) {
      const name = possible[i]!;
      const found = value[name];
      if (found === undefined) continue;
      const kept = possibleCleans[i]!(found);
      if (kept === found) continue;
      changed ??= { ...value };
      if (kept === undefined) delete changed[name];
      else changed[name] = kept;
    }
    return changed ?? value;
  };
}

function isObject(value: unknown): value is { readonly [member: string]: unknown } {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
