/** The same text for the same value, in whatever order its members come: a client may not keep their order. */
export function canonical(value: unknown): string {
  return JSON.stringify(value, (_name, member: unknown) => {
    if (typeof member !== "object" || member === null || Array.isArray(member)) return member;
    // A list of pairs, because an object puts members with numbers as names first, and one may be named __proto__.
    const names = Object.keys(member).filter((name) => (member as Record<string, unknown>)[name] !== undefined);
    return ["{}", ...names.sort().flatMap((name) => [name, (member as Record<string, unknown>)[name]])];
  });
}
