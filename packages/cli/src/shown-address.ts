/** The names of what is secret in a query or among the keywords of libpq. */
const SECRET = /passw|passphrase|pwd|secret|token|credential|signature|^sig$|auth|(?:^|[_-]|api)key$/i;

/**
 * An address as it may be shown, kept in logs and put into errors, also if it was mistyped: without its passwords. In doubt too much is left out: a password that holds a "/" or an "@" looks like a host to whoever reads strictly.
 * The library has the same (packages/holdfast/src/stores/shown-address.ts), which is not loaded yet where this is needed; a test keeps the two equal.
 */
export function shownAddress(address: string): string {
  const [, scheme, rest = address] = /^((?!file:|sqlite:)[a-z][a-z0-9+.-]*:\/\/)(.*)$/is.exec(address) ?? [];
  if (scheme === undefined) return withoutKeywords(address);
  const at = rest.lastIndexOf("@");
  if (at < 0) return scheme + withoutParameters(rest);
  const user = rest.slice(0, at);
  // Of a database the user is worth knowing; of a server it may be a token.
  const isDatabase = !/^https?:/i.test(scheme);
  const shown = isDatabase ? user.replace(/:.*$/s, ":…") : "…";
  return `${scheme}${isDatabase ? withoutParameters(shown) : shown}@${withoutParameters(rest.slice(at + 1))}`;
}

/** `?password=x&sslpassword=y`: up to the next "&", whatever stands there. */
function withoutParameters(text: string): string {
  return text.replace(/([?&#])([^=&]*)=([^&]*)/g, (whole: string, before: string, name: string) =>
    SECRET.test(decoded(name)) ? `${before}${name}=…` : whole,
  );
}

/** `host=db password='x y'`, as libpq takes it; and parameters of an address without a "//". */
function withoutKeywords(text: string): string {
  return withoutParameters(text).replace(
    /(^|[\s:])([a-z_]+)(\s*=\s*)('(?:[^'\\]|\\.)*'?|\S+)/gis,
    (whole: string, before: string, name: string, equals: string) =>
      SECRET.test(name) ? `${before}${name}${equals}…` : whole,
  );
}

function decoded(name: string): string {
  try {
    return decodeURIComponent(name);
  } catch {
    return name;
  }
}

/** The same for a text that may hold addresses, such as what a server or the parser of arguments says. */
export function withoutPasswords(text: string): string {
  return text
    .replace(/(https?:\/\/)[^\s/'"<>]*@/gi, "$1…@")
    .replace(/([a-z][a-z0-9+.-]*:\/\/[^\s/@:'"<>]*):[^\s'"<>]*@/gi, "$1:…@")
    .replace(/([?&][^=&\s]*(?:passw|secret|token|key)[^=&\s]*=)[^&\s'"<>]*/gi, "$1…");
}
