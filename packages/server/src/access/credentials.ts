import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import { clientProof, digestOf, isSameProof, serverProof } from "../proof/proof.ts";
import { refuse } from "./request-error.ts";

/** Who is asking. `session`: the one session that a read-only token is for. `share`: the id of that token. */
export type Caller =
  | { readonly access: "owner" }
  | {
      readonly access: "read";
      readonly session: string;
      readonly share: string;
      /** Credentials in what it reads are replaced. */
      readonly redact?: true;
    };

/** A read-only token as it is kept: by digests, so that a copy of the file opens nothing. */
export interface KeptShare {
  readonly id: string;
  readonly session: string;
  readonly digest: string;
  /** The digest of the cookie that stands for the token. Without one, the token has no cookie. */
  readonly cookieDigest?: string;
  readonly createdAt: string;
  readonly expiresAt: string | null;
  readonly redact?: true;
}

/** What is shown of a read-only token. */
type Share = Omit<KeptShare, "digest" | "cookieDigest">;

/** Where read-only tokens are kept. Several servers may use one. */
export interface ShareFile {
  load(): readonly KeptShare[];
  /** Replaces them by what `edit` returns. Nobody else changes them meanwhile; if it throws, nothing has changed. */
  change(edit: (shares: readonly KeptShare[]) => readonly KeptShare[]): void;
}

/** Lasts as long as the process. */
export function sharesInMemory(): ShareFile {
  let kept: readonly KeptShare[] = [];
  return {
    load: () => kept,
    change: (edit) => {
      kept = edit(kept);
    },
  };
}

const TOKEN_BYTES = 32;

export function newToken(): string {
  return randomBytes(TOKEN_BYTES).toString("base64url");
}

/** The tokens of a server, and the cookies that stand for them. */
export class Credentials {
  readonly #digest: Buffer;
  readonly #cookieDigest: Buffer;
  readonly #file: ShareFile;
  readonly #now: () => number;
  #isWarned = false;

  constructor(token: string, shares: ShareFile = sharesInMemory(), now: () => number = Date.now) {
    this.#digest = digestOf(token);
    this.#cookieDigest = digestOf(cookieOf(token));
    this.#file = shares;
    this.#now = now;
  }

  /** Null if the token is not one of this server's. */
  byToken(token: string): Caller | null {
    const given = digestOf(token);
    // Digests have the same length, so the comparison takes the same time for any token.
    if (timingSafeEqual(given, this.#digest)) return { access: "owner" };
    return callerBy(this.#sharesFor().find(({ digest }) => isEqual(digest, given)));
  }

  /**
   * Proves to a client that this server knows the client's token, and listens at this address. Null if the client does
   * not prove that it knows one.
   */
  prove(nonce: string, client: string, address: string): string | null {
    const digests = [this.#digest, ...this.#sharesFor().map(({ digest }) => Buffer.from(digest, "base64url"))];
    const known = digests.find((digest) => isSameProof(client, clientProof(digest, nonce)));
    return known ? serverProof(known, nonce, address) : null;
  }

  /** The cookie that stands for a token: it does not reveal the token, and survives a restart of the server. */
  cookieFor(token: string): string | null {
    const given = digestOf(token);
    if (timingSafeEqual(given, this.#digest)) return `owner.${cookieOf(token)}`;
    const share = this.#sharesFor().find(({ digest }) => isEqual(digest, given));
    return share ? `${share.id}.${cookieOf(token)}` : null;
  }

  byCookie(cookie: string): Caller | null {
    const dot = cookie.indexOf(".");
    if (dot < 0) return null;
    const [name, given] = [cookie.slice(0, dot), digestOf(cookie.slice(dot + 1))];
    if (name === "owner") return timingSafeEqual(given, this.#cookieDigest) ? { access: "owner" } : null;
    return callerBy(this.#sharesFor().find(({ id, cookieDigest }) => id === name && isEqual(cookieDigest, given)));
  }

  /** Of these callers with read-only tokens, those whose token has expired or was removed. */
  invalidAmong<C extends Caller>(callers: readonly C[]): readonly C[] {
    if (callers.every(({ access }) => access === "owner")) return [];
    const valid = new Set(this.#sharesFor().map(({ id }) => id));
    return callers.filter((caller) => caller.access === "read" && !valid.has(caller.share));
  }

  /** The read-only tokens of a session, or all of them. */
  shares(session?: string): readonly Share[] {
    return this.#valid(this.#file.load())
      .filter((share) => session === undefined || share.session === session)
      .map(({ digest: _digest, cookieDigest: _cookie, ...shown }) => shown);
  }

  /** Throws REQUEST_INVALID if it would have expired already. */
  share(session: string, expiresAt: string | null, redact = false): Share & { readonly token: string } {
    if (expiresAt !== null && !(Date.parse(expiresAt) > this.#now()))
      throw refuse(
        "REQUEST_INVALID",
        `The read-only token was not made: it would have expired already, at ${expiresAt}. Check the clocks of both machines.`,
        { in: "body", wrong: [{ at: "expiresAt", message: "is in the past" }] },
      );
    const token = newToken();
    const id = randomBytes(6).toString("hex");
    const createdAt = new Date(this.#now()).toISOString();
    const shown = { id, session, createdAt, expiresAt, ...(redact ? { redact } : {}) };
    const [digest, cookieDigest] = [token, cookieOf(token)].map((secret) => digestOf(secret).toString("base64url"));
    const made = { ...shown, digest: digest!, cookieDigest: cookieDigest! };
    this.#file.change((shares) => [...this.#valid(shares), made]);
    return { ...shown, token };
  }

  unshare(session: string, id: string): void {
    this.#file.change((shares) => {
      const kept = this.#valid(shares);
      const left = kept.filter((share) => share.id !== id || share.session !== session);
      if (left.length < kept.length) return left;
      throw refuse("SHARE_UNKNOWN", "This session has no read-only token with this id. It may have expired.");
    });
  }

  /** For checking who asks: a file that cannot be read opens nothing, and is no business of the caller. */
  #sharesFor(): readonly KeptShare[] {
    try {
      return this.#valid(this.#file.load());
    } catch (error) {
      if (!this.#isWarned) process.emitWarning(error as Error);
      this.#isWarned = true;
      return [];
    }
  }

  #valid(shares: readonly KeptShare[]): readonly KeptShare[] {
    const now = this.#now();
    return shares.filter(({ expiresAt }) => expiresAt === null || Date.parse(expiresAt) > now);
  }
}

function callerBy(share: KeptShare | undefined): Caller | null {
  if (!share) return null;
  return { access: "read", session: share.session, share: share.id, ...(share.redact ? { redact: true } : {}) };
}

function cookieOf(token: string): string {
  return createHmac("sha256", token).update("holdfast cookie 1").digest("base64url");
}

function isEqual(kept: string | undefined, given: Buffer): boolean {
  const digest = Buffer.from(kept ?? "", "base64url");
  return digest.length === given.length && timingSafeEqual(digest, given);
}
