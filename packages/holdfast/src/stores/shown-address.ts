/** Names of secret query parameters and libpq keywords. */
const SECRET = /passw|passphrase|pwd|secret|token|credential|signature|^sig$|auth|(?:^|[_-]|api)key$/i;

/**
 * An address without its passwords, safe to show, log and put into errors, even if it was mistyped. If in doubt, it
 * removes too much: to a strict parser, a password that contains "/" or "@" looks like a host.
 */
export function shownAddress(address: string): string {
  const [, scheme, rest = address] = /^((?!file:|sqlite:)[a-z][a-z0-9+.-]*:\/\/)(.*)$/is.exec(address) ?? [];
  if (scheme === undefined) return withoutKeywords(address);
  const at = rest.lastIndexOf("@");
  if (at < 0) return scheme + withoutParameters(rest);
  const user = rest.slice(0, at);
  // For a database the user name is useful; for a web server it may be a token.
  const isDatabase = !/^https?:/i.test(scheme);
  const shown = isDatabase ? user.replace(/:.*$/s, ":…") : "…";
  return `${scheme}${isDatabase ? withoutParameters(shown) : shown}@${withoutParameters(rest.slice(at + 1))}`;
}

/** `?password=x&sslpassword=y`: up to the next "&", whatever it contains. */
function withoutParameters(text: string): string {
  // Split into parts instead of one expression, which would scan the rest of the text from every "?" in it.
  const parts = text.split("&").map((part, index) => {
    const start = index > 0 ? 0 : part.search(/[?#]/) + 1;
    const end = start === 0 && index === 0 ? -1 : part.indexOf("=", start);
    return end >= 0 && SECRET.test(decodeName(part.slice(start, end))) ? `${part.slice(0, end)}=…` : part;
  });
  return parts.join("&");
}

/** `host=db password='x y'`, in libpq's syntax; and parameters of an address without "//". */
function withoutKeywords(text: string): string {
  return withoutParameters(text).replace(
    /(^|[\s:])([a-z_]+)(\s*=\s*)('(?:[^'\\]|\\.)*'?|\S+)/gis,
    (whole: string, before: string, name: string, equals: string) =>
      SECRET.test(name) ? `${before}${name}${equals}…` : whole,
  );
}

function decodeName(name: string): string {
  try {
    return decodeURIComponent(name);
  } catch {
    return name;
  }
}
