/** Names of secrets in query parameters and libpq keywords. */
const SECRET = /passw|passphrase|pwd|secret|token|credential|signature|^sig$|auth|(?:^|[_-]|api)key$/i;

/**
 * An address without its passwords, safe to show, log and put into errors, even if mistyped. When in doubt it hides too
 * much: to a strict parser, a password with a "/" or "@" looks like a host. The library has its own copy
 * (packages/holdfast/src/stores/shown-address.ts), which is not loaded yet when this is needed; a test keeps the two
 * equal.
 */
export function shownAddress(address: string): string {
  const [, scheme, rest = address] = /^((?!file:|sqlite:)[a-z][a-z0-9+.-]*:\/\/)(.*)$/is.exec(address) ?? [];
  if (scheme === undefined) return withoutKeywords(address);
  const at = rest.lastIndexOf("@");
  if (at < 0) return scheme + withoutParameters(rest);
  const user = rest.slice(0, at);
  // A database user is useful to show; a web server's may be a token.
  const isDatabase = !/^https?:/i.test(scheme);
  const shown = isDatabase ? user.replace(/:.*$/s, ":…") : "…";
  return `${scheme}${isDatabase ? withoutParameters(shown) : shown}@${withoutParameters(rest.slice(at + 1))}`;
}

/** `?password=x&sslpassword=y`: hides everything up to the next "&". */
function withoutParameters(text: string): string {
  // Splits instead of using one expression, which would rescan the rest of the text from every "?".
  const parts = text.split("&").map((part, index) => {
    const start = index > 0 ? 0 : part.search(/[?#]/) + 1;
    const end = start === 0 && index === 0 ? -1 : part.indexOf("=", start);
    return end >= 0 && SECRET.test(decodeName(part.slice(start, end))) ? `${part.slice(0, end)}=…` : part;
  });
  return parts.join("&");
}

/** `host=db password='x y'`, the libpq form; also parameters of an address without "//". */
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

/** The same for text that may contain addresses, such as a message from a server or the argument parser. */
export function withoutPasswords(text: string): string {
  // Word by word, with a few passes over each character: a server controls this text and its length.
  return text
    .replace(/(https?:\/\/)[^\s/'"<>]*@/gi, "$1…@")
    .replace(/[^\s'"<>]+/g, withoutPassword)
    .replace(/\S+/g, withoutSecrets);
}

/** `scheme://user:password@host`: hides up to the last "@", because a password may contain one. */
function withoutPassword(word: string): string {
  const at = word.lastIndexOf("@");
  const user = at < 0 ? null : /[a-z0-9+.-]:\/\/[^/@:]*:/i.exec(word);
  const end = user ? user.index + user[0].length : word.length;
  return end <= at ? `${word.slice(0, end)}…${word.slice(at)}` : word;
}

/** `?token=x&key=y`. */
function withoutSecrets(word: string): string {
  const parts = word.split("&").map((part, index) => {
    const first = index > 0 ? 0 : part.indexOf("?") + 1;
    if (index === 0 && first === 0) return part;
    for (let start = first, end = part.indexOf("=", start); end >= 0; start = end + 1, end = part.indexOf("=", start)) {
      if (!/passw|secret|token|key/i.test(part.slice(start, end))) continue;
      const quote = part.slice(end).search(/['"<>]/);
      return `${part.slice(0, end)}=…${quote < 0 ? "" : part.slice(end + quote)}`;
    }
    return part;
  });
  return parts.join("&");
}
