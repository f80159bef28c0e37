const warned = new Set<string>();

/** Once per process. Node prints it to stderr, unless the application handles warnings or has turned them off. */
export function warnOnce(text: string, code: string): void {
  if (warned.has(text)) return;
  warned.add(text);
  process.emitWarning(text, { type: "HoldfastWarning", code });
}
