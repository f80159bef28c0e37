import { parseArgs } from "node:util";

/** What `npm run bench` was asked for. */
export interface Options {
  readonly quick: boolean;
  readonly only: readonly string[];
  /** Undefined: as the kind of run suggests. */
  readonly write: boolean | undefined;
  readonly dir: string | undefined;
  readonly peers: boolean;
  readonly cache: string | undefined;
  readonly help: boolean;
}

/** Throws a TypeError whose message is for the user: an option that does not exist, or one that needs another. */
export function readOptions(args: readonly string[]): Options {
  const { values } = parseArgs({
    args: [...args],
    options: {
      quick: { type: "boolean", default: false },
      only: { type: "string", multiple: true, default: [] },
      write: { type: "boolean" },
      dir: { type: "string" },
      peers: { type: "boolean", default: false },
      cache: { type: "string" },
      help: { type: "boolean", default: false },
    },
    allowNegative: true,
  });
  if (values.cache !== undefined && !values.peers)
    throw new TypeError("--cache is where --peers installs: add --peers.");
  return { ...values, write: values.write, dir: values.dir, cache: values.cache };
}
