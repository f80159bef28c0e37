/** One violation of a provider's rule, at the place where the provider's API would report it. */
export interface Violation {
  /** The name of the rule in the validator's list, for example `anthropic-1`. */
  readonly rule: string;
  /** Path into the request, for example `messages.2.content.0`. */
  readonly at: string;
  readonly why: string;
}

export type Add<Rule extends string = string> = (rule: Rule, at: string, why: string) => void;

export type Json = Readonly<Record<string, unknown>>;

export function isObject(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The row of a table by its name: a request may contain `constructor`. */
export function rowOf<T>(table: Readonly<Record<string, T>>, name: unknown): T | undefined {
  return typeof name === "string" && Object.hasOwn(table, name) ? table[name] : undefined;
}

export function isNonEmpty(value: unknown): value is string {
  return typeof value === "string" && value !== "";
}

/** Runs the checks and returns what they found, in the order of the checks. */
export function judge<Rule extends string>(checks: (add: Add<Rule>) => void): Violation[] {
  const found: Violation[] = [];
  checks((rule, at, why) => {
    found.push({ rule, at, why });
  });
  return found;
}

/** The list under `key` of a request body, or the request itself if it is the list. */
export function listOf(request: unknown, key: string): readonly unknown[] | undefined {
  const list = isObject(request) ? request[key] : request;
  return Array.isArray(list) ? list : undefined;
}

/** Every key of `value` that the API does not know: it answers "extra inputs are not permitted". */
export function unknownKeys(value: Json, known: readonly string[]): string[] {
  return Object.keys(value).filter((key) => value[key] !== undefined && !known.includes(key));
}
