import { shownAddress } from "holdfast/address";

/** Hides the passwords of addresses in a text, such as a message from a server or the argument parser. */
export function withoutPasswords(text: string): string {
  return text.replace(/[^\s'"<>]+/g, (word) => {
    const start = addressStart(word);
    return shownAddress(start > 0 ? word.slice(0, start) + shownAddress(word.slice(start)) : word);
  });
}

/** Where the first `scheme://` of a word begins, or -1. Looks back from each "://": a server controls the length. */
function addressStart(word: string): number {
  for (let colon = word.indexOf("://"); colon >= 0; colon = word.indexOf("://", colon + 3)) {
    let start = colon;
    while (start > 0 && /[a-z0-9+.-]/i.test(word.charAt(start - 1))) start -= 1;
    if (start < colon) return start;
  }
  return -1;
}
