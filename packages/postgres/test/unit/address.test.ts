import pg from "pg";
import { expect, test } from "vitest";
import { parseAddress } from "../../src/address.ts";

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
