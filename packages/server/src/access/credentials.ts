import { createHash, createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import { refuse } from "./request-error.ts";

/** Who is asking. `session`: the one session that a read-only token is for. */
export type Caller = { readonly access: "owner" } | { readonly access: "read"; readonly session: string };

/** A read-only token as it is kept: by digests, so that a copy of the file opens nothing. */
export interface KeptShare {
  readonly id: string;
  readonly session: string;
  readonly digest: string;
  /** The digest of the cookie that stands for the token. */
  readonly cookieDigest: string;
  readonly createdAt: string;
  readonly expiresAt: string | null;
}

/** What is shown of a read-only token. */
type Share = Omit<KeptShare, "digest" | "cookieDigest">;

/** Where read-only tokens are kept. */
export interface ShareFile {
  load(): readonly KeptShare[];
  save(shares: readonly KeptShare[]): void;
}

/** Lasts as long as the process. */
export function sharesInMemory(): ShareFile {
  let kept: readonly KeptShare[] = [];
  return {
    load: () => kept,
    save: (shares) => {
      kept = shares;
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
  readonly #shares: ShareFile;
  readonly #now: () => number;

  constructor(token: string, shares: ShareFile = sharesInMemory(), now: () => number = Date.now) {
    this.#digest = digestOf(token);
    this.#cookieDigest = digestOf(cookieOf(token));
    this.#shares = shares;
    this.#now = now;
  }

  /** Null if the token is not one of this server's. */
  byToken(token: string): Caller | null {
    const given = digestOf(token);
    // Digests have the same length, so the comparison takes the same time for any token.
    if (timingSafeEqual(given, this.#digest)) return { access: "owner" };
    const share = this.#valid().find(({ digest }) => isEqual(Buffer.from(digest, "base64url"), given));
    return share ? { access: "read", session: share.session } : null;
  }

  /** The cookie that stands for a token: it does not reveal the token, and survives a restart of the server. */
  cookieFor(token: string): string | null {
    const given = digestOf(token);
    if (timingSafeEqual(given, this.#digest)) return `owner.${cookieOf(token)}`;
    const share = this.#valid().find(({ digest }) => isEqual(Buffer.from(digest, "base64url"), given));
    return share ? `${share.id}.${cookieOf(token)}` : null;
  }

  byCookie(cookie: string): Caller | null {
    const dot = cookie.indexOf(".");
    if (dot < 0) return null;
    const [name, given] = [cookie.slice(0, dot), digestOf(cookie.slice(dot + 1))];
    if (name === "owner") return timingSafeEqual(given, this.#cookieDigest) ? { access: "owner" } : null;
    const share = this.#valid().find(({ id }) => id === name);
    if (!share || !isEqual(Buffer.from(share.cookieDigest, "base64url"), given)) return null;
    return { access: "read", session: share.session };
  }

  sharesOf(session: string): readonly Share[] {
    return this.#valid()
      .filter((share) => share.session === session)
      .map(({ digest: _digest, cookieDigest: _cookie, ...shown }) => shown);
  }

  share(session: string, expiresAt: string | null): Share & { readonly token: string } {
    const token = newToken();
    const id = randomBytes(9).toString("base64url");
    const createdAt = new Date(this.#now()).toISOString();
    const shown = { id, session, createdAt, expiresAt };
    const [digest, cookieDigest] = [token, cookieOf(token)].map((secret) => digestOf(secret).toString("base64url"));
    this.#shares.save([...this.#valid(), { ...shown, digest: digest!, cookieDigest: cookieDigest! }]);
    return { ...shown, token };
  }

  unshare(session: string, id: string): void {
    const kept = this.#valid();
    const left = kept.filter((share) => share.id !== id || share.session !== session);
    if (left.length === kept.length)
      throw refuse("SHARE_UNKNOWN", "This session has no read-only token with this id. It may have expired.");
    this.#shares.save(left);
  }

  #valid(): readonly KeptShare[] {
    const now = new Date(this.#now()).toISOString();
    return this.#shares.load().filter(({ expiresAt }) => expiresAt === null || expiresAt > now);
  }
}

function digestOf(secret: string): Buffer {
  return createHash("sha256").update(secret).digest();
}

function cookieOf(token: string): string {
  return createHmac("sha256", token).update("holdfast cookie 1").digest("base64url");
}

function isEqual(one: Buffer, other: Buffer): boolean {
  return one.length === other.length && timingSafeEqual(one, other);
}
