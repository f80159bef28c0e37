import fc from "fast-check";
import { shownAddress } from "holdfast/address";
import { describe, expect, test } from "vitest";
import { seedOf } from "../../../holdfast/test/seed.ts";
import { loadConfig } from "../../src/config.ts";
import { failureOf } from "../../src/failure.ts";
import { withoutPasswords } from "../../src/without-passwords.ts";

const seed = seedOf(import.meta.url, "unit");

describe("an address as it is shown", () => {
  test.each([
    ["/home/me/store", "/home/me/store"],
    ["sqlite:/home/me/a:b@c.sqlite", "sqlite:/home/me/a:b@c.sqlite"],
    ["sqlite:///home/me/a:b@c.sqlite", "sqlite:///home/me/a:b@c.sqlite"],
    ["postgres://me@db:5432/app?schema=x", "postgres://me@db:5432/app?schema=x"],
    ["postgres://me:S3CRET@db/app", "postgres://me:…@db/app"],
    ["postgres://me:S3@CRET@db/app", "postgres://me:…@db/app"],
    ["postgres://me:S3/CRET@db/app", "postgres://me:…@db/app"],
    ["postgres://me:S3?CRET#@db/app", "postgres://me:…@db/app"],
    ["POSTGRES://me:S3CRET@db/app", "POSTGRES://me:…@db/app"],
    ["postgres://:S3CRET@db", "postgres://:…@db"],
    ["postgres://me@db/app?password=S3CRET", "postgres://me@db/app?password=…"],
    ["postgres://db/app?user=me&password=S3;CR ET#x&schema=y", "postgres://db/app?user=me&password=…&schema=y"],
    ["postgres://db/app?sslpassword=S3CRET", "postgres://db/app?sslpassword=…"],
    ["postgres://db/app?SSLPassword=S3CRET", "postgres://db/app?SSLPassword=…"],
    ["postgres://db/app?pass%77ord=S3CRET", "postgres://db/app?pass%77ord=…"],
    ["postgres://db/app?pass%77ord%=S3CRET", "postgres://db/app?pass%77ord%=…"],
    ["postgres://db/app?oauth_client_secret=S3CRET", "postgres://db/app?oauth_client_secret=…"],
    ["postgres://db/app?scram_client_key=S3CRET", "postgres://db/app?scram_client_key=…"],
    ["postgres://db/app?sslkey=/home/me/key.pem", "postgres://db/app?sslkey=/home/me/key.pem"],
    ["postgres:///app?host=/run&password=S3CRET", "postgres:///app?host=/run&password=…"],
    ["postgres:app?password=S3CRET", "postgres:app?password=…"],
    ["host=db password=S3CRET dbname=x", "host=db password=… dbname=x"],
    ["host=db password = 'S3 CR\\'ET' dbname=x", "host=db password = … dbname=x"],
    ["postgres:host=db sslpassword=S3CRET", "postgres:host=db sslpassword=…"],
    ["https://me:S3CRET@host/v1", "https://…@host/v1"],
    ["https://S3CRET@host/v1", "https://…@host/v1"],
    ["https://host/v1?api_key=S3CRET&x=1", "https://host/v1?api_key=…&x=1"],
    ["https://host/v1?key=S3CRET", "https://host/v1?key=…"],
    ["http://localhost:11434/v1", "http://localhost:11434/v1"],
    ["https://host/?next=/v1?token=S3CRET&x=1", "https://host/?next=/v1?token=…&x=1"],
    ["git+https://S3CRET@host/repository", "git+https://…@host/repository"],
  ])("%s", (address, shown) => {
    expect(shownAddress(address)).toBe(shown);
  });

  test("a password of any characters is not in it", () => {
    const part = fc.constantFrom(..."/?#@:&=%[] ';".split(""), "a", "db", "%41");
    const password = fc.array(part, { maxLength: 6 }).map((parts) => `HUNTER2${parts.join("")}`);
    const shape = fc.constantFrom<(password: string) => string>(
      (one) => `postgres://me:${one}@db/app`,
      (one) => `https://me:${one}@host/v1`,
      (one) => `postgres://db/app?password=${encodeURIComponent(one)}&x=1`,
      (one) => `host=db password='${one.replaceAll("'", "\\'")}'`,
    );
    fc.assert(
      fc.property(password, shape, (password, shape) => {
        const address = shape(password);
        expect(shownAddress(address)).not.toContain("HUNTER2");
      }),
      { seed, numRuns: 2000 },
    );
  });
});

test.each([
  "no route to https://me:S3CRET@host/v1, sorry",
  "Request cannot be constructed from a URL that includes credentials: http://me:S3CRET@host/v1/chat",
  "holdfast: unknown option '--base-ulr=https://S3CRET@host'",
  "could not open (postgres://me:S3CRET@host/db: refused)",
  "GET https://host/v1?api_key=S3CRET failed",
  "could not clone git+https://S3CRET@host/repository",
  "2://me:S3CRET@host",
])("a text of somebody else's is told without the password in it: %s", (text) => {
  expect(withoutPasswords(text)).not.toContain("S3CRET");
  expect(failureOf(new Error(text)).message).not.toContain("S3CRET");
});

test("a value that is wrong is told without the password in it", () => {
  const around = (env: Record<string, string>) => ({ env, platform: "linux", home: () => "/nowhere" });
  for (const env of [{ HOLDFAST_BASE_URL: "ftp://me:S3CRET@host" }, { HOLDFAST_BASE_URL: "http://me:S3CRET@ho st" }]) {
    const fault = (() => {
      try {
        return loadConfig({}, around(env));
      } catch (error) {
        return error;
      }
    })();
    expect(fault).toMatchObject({ code: "CONFIG_INVALID" });
    expect(String(fault)).not.toContain("S3CRET");
  }
});
