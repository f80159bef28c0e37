/** Reads a member: the value itself, a part of it that is usable, or undefined if none is. Nothing is taken for granted of what stands in a journal. */
export type Clean = (value: unknown) => unknown;

type Members = { readonly [member: string]: Clean };

export const text: Clean = (value) => (typeof value === "string" ? value : undefined);
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

/** The usable members of an object that has any names. */
export function record(member: Clean): Clean {
  return (value) => {
    if (!isObject(value)) return undefined;
    const entries = Object.entries(value);
    const kept = entries.filter(([, one]) => member(one) === one && one !== undefined);
    return kept.length === entries.length ? value : Object.fromEntries(kept);
  };
}

/** An object without whose required members it means nothing. Members that are not named here stay as they are. */
export function shape(required: Members, optional: Members = {}): Clean {
  // Every record passes here: lists are gone through faster than pairs are taken apart.
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
