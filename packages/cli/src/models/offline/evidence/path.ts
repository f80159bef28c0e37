export function samePath(a: unknown, b: unknown): boolean {
  return typeof a === "string" && typeof b === "string" && plainPath(a) === plainPath(b);
}

export function plainPath(path: string): string {
  const plain = path
    .trim()
    .replace(/^(\.\/+)+/, "")
    .replace(/(?<=[^/])\/+$|(?<=^\/)\/+$/, "");
  return plain === "" ? "." : plain;
}
