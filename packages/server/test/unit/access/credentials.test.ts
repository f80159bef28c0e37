import { createHash, createHmac } from "node:crypto";
import { expect, test } from "vitest";
import { Credentials, newToken, sharesInMemory } from "../../../src/access/credentials.ts";

test("a token and its cookie open the same; a copy of the share file opens nothing", () => {
  const file = sharesInMemory();
  const token = newToken();
  const credentials = new Credentials(token, file);
  const share = credentials.share("s1", null);
  const caller = { access: "read", session: "s1", share: share.id };
  expect(credentials.byToken(share.token)).toEqual(caller);
  const cookie = credentials.cookieFor(share.token)!;
  expect(credentials.byCookie(cookie)).toEqual(caller);
  expect(credentials.byCookie(credentials.cookieFor(token)!)).toEqual({ access: "owner" });
  // Also after a restart of the server.
  expect(new Credentials(token, file).byCookie(cookie)).toEqual(caller);
  expect(credentials.shares("s1")).toEqual([
    { id: share.id, session: "s1", createdAt: share.createdAt, expiresAt: null },
  ]);

  const text = JSON.stringify(file.load());
  for (const secret of [share.token, cookie.split(".")[1]!]) expect(text).not.toContain(secret);
  const { digest, cookieDigest } = file.load()[0]!;
  const raw = Buffer.from(digest, "base64url");
  const made = [digest, cookieDigest!, createHmac("sha256", raw).update("holdfast cookie 1").digest("base64url")];
  for (const guess of [...made, createHash("sha256").update(cookieDigest!).digest("base64url")]) {
    expect(credentials.byToken(guess)).toBeNull();
    expect(credentials.byCookie(`${share.id}.${guess}`)).toBeNull();
    expect(credentials.byCookie(`owner.${guess}`)).toBeNull();
  }
});

test("a share that was kept without the digest of a cookie opens by its token, and by no cookie", () => {
  const file = sharesInMemory();
  const credentials = new Credentials(newToken(), file);
  const share = credentials.share("s1", null);
  const cookie = credentials.cookieFor(share.token)!;
  file.change((kept) => kept.map(({ cookieDigest: _, ...older }) => older));
  expect(credentials.byToken(share.token)).toMatchObject({ access: "read" });
  for (const given of [cookie, `${share.id}.`, `${share.id}.undefined`]) expect(credentials.byCookie(given)).toBeNull();
});

test("a file of shares that cannot be read opens nothing, and keeps the owner from nothing but sharing", () => {
  const token = newToken();
  const broken = {
    load: () => {
      throw new Error("not a list of read-only tokens");
    },
    change: () => {
      throw new Error("not a list of read-only tokens");
    },
  };
  const credentials = new Credentials(token, broken);
  expect(credentials.byToken(token)).toEqual({ access: "owner" });
  expect(credentials.byToken("wrong")).toBeNull();
  expect(credentials.cookieFor("wrong")).toBeNull();
  expect(credentials.byCookie("x.y")).toBeNull();
  expect(credentials.invalidAmong([{ access: "read", session: "s", share: "x" }])).toHaveLength(1);
  expect(() => credentials.shares()).toThrow("not a list");
});

test("a token that would have expired already is not made; one without milliseconds expires in its second", () => {
  let now = Date.parse("2026-11-16T12:00:00.500Z");
  const credentials = new Credentials(newToken(), undefined, () => now);
  for (const past of ["2026-11-16T12:00:00Z", "2026-11-16T12:00:00.500Z", "2001-01-01T00:00:00Z"])
    expect(() => credentials.share("s", past)).toThrow("expired already");
  const { token } = credentials.share("s", "2026-11-16T12:00:01Z");
  expect(credentials.byToken(token)).not.toBeNull();
  now += 500;
  expect(credentials.byToken(token)).toBeNull();
});
