/** The variables of a process. */
export type Environment = Readonly<Record<string, string | undefined>>;

/**
 * What a command sees of the agent's own variables: all but those that hold a key of the agent itself. A command that prints its environment would put them into the conversation, and with it into the journal and to the provider. No wall: a
 * command runs as the user, and reaches what the user reaches. `pass`: names that it is to see all the same.
 */
export function commandEnvironment(
  env: Environment,
  {
    keys,
    store,
    pass = [],
  }: { readonly keys: readonly string[]; readonly store?: string | undefined; readonly pass?: readonly string[] },
): Environment {
  const isDatabase = /^postgres(?:ql)?:/iu.test(store ?? "");
  const passed = new Set(pass.map(upper));
  const kept = new Set([...keys, ...(isDatabase ? ["PGPASSWORD"] : [])].map(upper));
  return Object.fromEntries(
    Object.entries(env).filter(([name, value]) => {
      if (passed.has(upper(name))) return true;
      if (kept.has(upper(name))) return false;
      return !(upper(name) === "HOLDFAST_STORE" && hasPassword(value ?? ""));
    }),
  );
}

/** Windows does not tell upper from lower case in names. */
function upper(name: string): string {
  return name.toUpperCase();
}

/** Of the address of a store. */
function hasPassword(address: string): boolean {
  return /^[a-z][a-z0-9+.-]*:\/\/[^@]*:.*@|[?&]password=/iu.test(address);
}
