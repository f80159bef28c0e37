/** The names of what is secret in a query or among the keywords of libpq. */
const SECRET = /passw|passphrase|pwd|secret|token|credential|signature|^sig$|auth|(?:^|[_-]|api)key$/i;

/**
 * An address as it may be shown, kept in logs and put into errors, also if it was mistyped: without its passwords. In
 * doubt too much is left out: a password that holds a "/" or an "@" looks like a host to whoever reads strictly. The
 * command has the same for what it shows before the library is loaded (packages/cli/src/shown-address.ts); a test keeps
 * the two equal.
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
  // By parts and not by one expression: that would look at the rest of the text from every "?" in it.
  const parts = text.split("&").map((part, index) => {
    const start = index > 0 ? 0 : part.search(/[?#]/) + 1;
    const end = start === 0 && index === 0 ? -1 : part.indexOf("=", start);
    return end >= 0 && SECRET.test(decoded(part.slice(start, end))) ? `${part.slice(0, end)}=…` : part;
  });
  return parts.join("&");
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
