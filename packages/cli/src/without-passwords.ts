import { shownAddress } from "holdfast/address";

/** Hides the passwords of addresses in a text, such as a message from a server or the argument parser. */
export function withoutPasswords(text: string): string {
  // Word by word, with a few passes over each character: a server controls this text and its length.
  return text.replace(/[a-z][a-z0-9+.-]*:\/\/[^\s'"<>]+/gi, shownAddress).replace(/[^\s'"<>]+/g, shownAddress);
}
