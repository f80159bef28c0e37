import pg from "pg";
import { expect, test } from "vitest";
import { parseAddress, resolveAddress } from "../../src/address.ts";

const POOLER = "postgres://me:secret@pooler:6432/db?sslmode=disable";

test.each<[query: string, direct: string | null]>([
  ["", "postgres://me:secret@pooler:6432/db?"],
  ["&direct=server", "postgres://me:secret@server:6432/db?"],
  ["&direct=server:5432", "postgres://me:secret@server:5432/db?"],
  ["&direct=:5432", "postgres://me:secret@pooler:5432/db?"],
  ["&direct=[::1]:5432", "postgres://me:secret@[::1]:5432/db?"],
  ["&direct=none", null],
])("behind a pooler, %j leads to the server itself", (query, direct) => {
  const address = parseAddress(POOLER + query);
  expect(address.direct?.slice(0, direct?.length) ?? null).toBe(direct);
  expect(address.url).not.toContain("direct=");
  expect(address.direct ?? "").not.toContain("direct=");
  expect(address.name).not.toContain("secret");
});

test.each(["direct=", "direct=a/b", "direct=a:b", "direct=me@server"])(
  "%s makes no sense, and says so without the password",
  (query) => {
    expect(() => parseAddress(`${POOLER}&${query}`)).toThrow(/^(?!.*secret).*direct/);
  },
);

test.each([
  ["postgres:///db?host=/var/run&direct=:5433", { host: "/var/run", port: 5433 }],
  ["postgres:///db?host=pooler&port=6432&direct=:5433", { host: "pooler", port: 5433 }],
  ["postgres:///db?host=pooler&port=6432&direct=server", { host: "server", port: 6432 }],
])("%s: the host and the port may stand in the query", (url, expected) => {
  const { host, port } = new pg.Client({ connectionString: parseAddress(url).direct! });
  expect({ host, port }).toEqual(expected);
});

test.each(["a@b", "a/b", "a:b&c=d+e $f", "100%", "ä"])("a database named %j is the one that is asked for", (name) => {
  const { url, direct } = parseAddress(`postgres://me@host/${encodeURIComponent(name)}?direct=server`);
  for (const connectionString of [url, direct!]) expect(new pg.Client({ connectionString }).database).toBe(name);
});

test.each(["postgres://me@host/a%3Fb", "postgres://me@host/a%23b"])("%s cannot be asked for, and says so", (url) => {
  expect(() => parseAddress(url)).toThrow(/"\?" or "#" in its name/);
});

test.each(["postgres://u:100%@host/db", "postgres://u%@host/db", "postgres://u@host/d%b", "postgres://u@host/%ff"])(
  "%s: what is no code of a character is told before anybody is asked",
  async (url) => {
    await expect(resolveAddress(url, {})).rejects.toMatchObject({
      code: "STORE_URL_INVALID",
      message: expect.stringContaining('write "%25"'),
    });
  },
);
