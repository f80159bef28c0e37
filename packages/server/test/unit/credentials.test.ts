import { createHash, createHmac } from "node:crypto";
import { expect, test } from "vitest";
import { Credentials, newToken, sharesInMemory } from "../../src/access/credentials.ts";

test("a token and its cookie open the same; a copy of the share file opens nothing", () => {
  const file = sharesInMemory();
  const token = newToken();
  const credentials = new Credentials(token, file);
  const share = credentials.share("s1", null);
  const caller = { access: "read", session: "s1" };
  expect(credentials.byToken(share.token)).toEqual(caller);
  const cookie = credentials.cookieFor(share.token)!;
  expect(credentials.byCookie(cookie)).toEqual(caller);
  expect(credentials.byCookie(credentials.cookieFor(token)!)).toEqual({ access: "owner" });
  // Also after a restart of the server.
  expect(new Credentials(token, file).byCookie(cookie)).toEqual(caller);
  expect(credentials.sharesOf("s1")).toEqual([
    { id: share.id, session: "s1", createdAt: share.createdAt, expiresAt: null },
  ]);

  const text = JSON.stringify(file.load());
  for (const secret of [share.token, cookie.split(".")[1]!]) expect(text).not.toContain(secret);
  const { digest, cookieDigest } = file.load()[0]!;
  const raw = Buffer.from(digest, "base64url");
  const made = [digest, cookieDigest, createHmac("sha256", raw).update("holdfast cookie 1").digest("base64url")];
  for (const guess of [...made, createHash("sha256").update(cookieDigest).digest("base64url")]) {
    expect(credentials.byToken(guess)).toBeNull();
    expect(credentials.byCookie(`${share.id}.${guess}`)).toBeNull();
    expect(credentials.byCookie(`owner.${guess}`)).toBeNull();
  }
});
