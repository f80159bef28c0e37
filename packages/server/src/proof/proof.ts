import { createHash, createHmac, timingSafeEqual } from "node:crypto";

/**
 * How a client and a server show each other that they know a token, without sending it. A program that listens on a
 * port need not be the server that was there yesterday, so our clients send a token only over a connection whose other
 * end has proven itself. The server signs the address that the client wanted to reach: a listener on another port
 * cannot pass the question on to the real server and use its answer.
 */
export const PROOF_PATH = "/auth/proof";
export const PROOF_HEADER = "holdfast-proof";

/** What a token is recognized by. The server keeps this of a token, and not the token. */
export function digestOf(token: string): Buffer {
  return createHash("sha256").update(token).digest();
}

/** By the client: that it knows the token with this digest. */
export function clientProof(digest: Buffer, nonce: string): string {
  return sign(digest, ["holdfast client 1", nonce]);
}

/** By the server: the same, and that it is what listens at this address. */
export function serverProof(digest: Buffer, nonce: string, address: string): string {
  return sign(digest, ["holdfast server 1", nonce, address]);
}

export function isSameProof(given: string, expected: string): boolean {
  const [a, b] = [Buffer.from(given), Buffer.from(expected)];
  return a.length === b.length && timingSafeEqual(a, b);
}

function sign(digest: Buffer, words: readonly string[]): string {
  return createHmac("sha256", digest).update(words.join("\n")).digest("base64url");
}
