import { createHash } from "node:crypto";
import type { SpokenPart, Transfer } from "../contract/transfer.ts";

/** What the records of a new session need: ids and times that are the same each time, and what is left out. */
export class Making {
  readonly #transfer: Transfer;
  #ids = 0;
  #ticks = 0;
  #reasonings = 0;
  #images = 0;

  constructor(transfer: Transfer) {
    this.#transfer = transfer;
  }

  /** Hexadecimal digits, another sequence each time. */
  hex(length: number): string {
    return createHash("sha256")
      .update(`${this.#transfer.id} ${++this.#ids}`)
      .digest("hex")
      .slice(0, length);
  }

  uuid(): string {
    const hex = this.hex(32);
    return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20)}`;
  }

  /** Each record a millisecond after the one before it. */
  nextMs(): number {
    return this.#transfer.at + this.#ticks++;
  }

  nextTime(): string {
    return new Date(this.nextMs()).toISOString();
  }

  leaveReasoning(): void {
    this.#reasonings++;
  }

  /** All of it as text: of an image, that there was one. */
  textOf(parts: readonly SpokenPart[]): string {
    return parts.map((part) => (part.type === "text" ? part.text : this.imageWords(part))).join("\n");
  }

  imageWords({ mediaType }: Extract<SpokenPart, { type: "image" }>): string {
    this.#images++;
    return `[An image (${mediaType}) was here. holdfast export could not carry it over.]`;
  }

  leftOut(): string[] {
    const words = [];
    const counted = (count: number, one: string): string => `${count} ${one}${count === 1 ? "" : "s"}`;
    if (this.#reasonings > 0)
      words.push(
        `${counted(this.#reasonings, "piece")} of reasoning: this agent takes none without its provider's signature`,
      );
    if (this.#images > 0) words.push(`${counted(this.#images, "image")}: a note stands in its place`);
    return words;
  }
}

/** Records as lines of JSON. Some agents take U+2028 and U+2029 for the end of a line. */
export const lines = (records: readonly unknown[]): string =>
  records
    .map((record) => `${JSON.stringify(record)}\n`)
    .join("")
    .replaceAll("\u2028", "\\u2028")
    .replaceAll("\u2029", "\\u2029");
