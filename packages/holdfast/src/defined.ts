/** The members of `T`; those that may be undefined are optional instead. */
type Defined<T> = { [K in keyof T as undefined extends T[K] ? never : K]: T[K] } & {
  [K in keyof T as undefined extends T[K] ? K : never]?: Exclude<T[K], undefined>;
};

/** A copy without the members that are undefined: what is left out is not there, rather than set to undefined. */
export function defined<T extends object>(members: T): Defined<T> {
  const kept: Partial<T> = {};
  for (const name in members) if (members[name] !== undefined) kept[name] = members[name];
  return kept as unknown as Defined<T>;
}
