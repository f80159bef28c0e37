import type { AppStateChanges } from "../admit/app-state.ts";
import { invalid } from "../admit/refusals.ts";
import { HoldfastError } from "../errors.ts";
import type { Json } from "../journal/record.ts";
import type { Reading } from "../view/reading.ts";

/** A schema of any library that implements Standard Schema (standardschema.dev): Zod, Valibot, ArkType. */
export interface StandardSchema<Input = unknown, Output = Input> {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => unknown;
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
  };
}

/** One name of `appState`, with its type. */
export interface TypedState<Input, Output> {
  readonly name: string;
  /** The value that the session has; undefined if it has none. Throws RECORD_INVALID if it does not fit the schema. */
  of(reading: Pick<Reading<unknown>, "appState">): Output | undefined;
  /** For `appState` of `startTurn`, `append` and `tool`. Throws RECORD_INVALID if it does not fit the schema. */
  set(value: Input): AppStateChanges;
  /** Takes the value away. */
  remove(): AppStateChanges;
}

/**
 * A value of `appState` with a type. Recorded is the value as given, not as the schema makes it. Give a new version of
 * the schema a name of its own (`cart.v2`), and turn an old value into a new one where you read it.
 */
export function typedState<Input, Output = Input>(
  name: string,
  schema: StandardSchema<Input, Output>,
): TypedState<Input, Output> {
  const validate = (value: unknown): { readonly output: Output } | { readonly why: string } => {
    const result = schema["~standard"].validate(value) as
      | { readonly value: Output; readonly issues?: undefined }
      | { readonly issues: readonly { readonly message: string }[] }
      | Promise<unknown>;
    if (result instanceof Promise) throw invalid(`the schema of ${JSON.stringify(name)} is asynchronous`);
    if (!result.issues) return { output: result.value };
    return {
      why: result.issues
        .map(({ message }) => message)
        .join("; ")
        .slice(0, 1000),
    };
  };
  return {
    name,
    of: ({ appState }) => {
      const recorded = Object.hasOwn(appState, name) ? appState[name] : undefined;
      if (recorded === undefined) return undefined;
      const found = validate(recorded);
      if ("output" in found) return found.output;
      const message =
        `The recorded state ${JSON.stringify(name)} does not fit its schema (${found.why}). Nothing was touched. ` +
        "A version of the program that wrote it under the same name had another schema: give each version a name of its own.";
      throw new HoldfastError("RECORD_INVALID", message, { name, why: found.why });
    },
    set: (value) => {
      const found = validate(value);
      if ("output" in found) return { [name]: value as Json };
      throw invalid(`the state ${JSON.stringify(name)} does not fit its schema (${found.why})`);
    },
    remove: () => ({ [name]: null }),
  };
}
