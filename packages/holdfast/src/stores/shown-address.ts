/** Names of secret query parameters and libpq keywords. */
const SECRET = /passw|passphrase|pwd|secret|token|credential|signature|^sig$|auth|(?:^|[_-]|api)key$/i;

/**
 * An address without its passwords, safe to show, log and put into errors, even if it was mistyped. If in doubt, it
 * removes too much: to a strict parser, a password that contains "/" or "@" looks like a host.
 */
export function shownAddress(address: string): string {
  const [, scheme, rest = address] = /^((?!file:|sqlite:)[a-z0-9+.-]+:\/\/)(.*)$/is.exec(address) ?? [];
  if (scheme === undefined) return withoutKeywords(address);
  const at = rest.lastIndexOf("@");
  if (at < 0) return scheme + withoutParameters(rest);
  const user = rest.slice(0, at);
  // For a database the user name is useful; for a web server (also `git+https:`) it may be a token.
  const isDatabase = !/https?:/i.test(scheme);
  const shown = isDatabase ? user.replace(/:.*$/s, ":…") : "…";
  return `${scheme}${isDatabase ? withoutParameters(shown) : shown}@${withoutParameters(rest.slice(at + 1))}`;
}

/** `?password=x&sslpassword=y`: up to the next "&", whatever it contains. A value may itself be an address. */
function withoutParameters(text: string): string {
  // Split into parts instead of one expression, which would scan the rest of the text from every "?" in it.
  const parts = text.split("&").map((part, index) => {
    let start = index > 0 ? 0 : part.search(/[?#]/) + 1;
    if (start === 0 && index === 0) return part;
    for (let end = part.indexOf("=", start); end >= 0; end = part.indexOf("=", start)) {
      const name = part.slice(start, end).split(/[?#]/).at(-1)!;
      if (SECRET.test(decodeName(name))) return `${part.slice(0, end)}=…`;
      start = end + 1;
    }
    return part;
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

/** ASCII suffices for names of secrets. `decodeURIComponent` would throw at each name that is not well-formed. */
function decodeName(name: string): string {
  return name.replace(/%([0-7][0-9a-f])/gi, (_escape, code: string) => String.fromCharCode(Number.parseInt(code, 16)));
}
