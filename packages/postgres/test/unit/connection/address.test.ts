import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { expect, onTestFinished, test } from "vitest";
import { parseAddress, resolveAddress } from "../../../src/connection/address.ts";
import { passwordFor } from "../../../src/connection/pgpass.ts";

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

test.each([
  ["postgres://me:secret@host/db", "postgres://me@host/db"],
  ["postgresql://host/db?schema=holdfast", "postgresql://host/db"],
  ["postgres://host/db?schema=a%20b", "postgres://host/db?schema=a%20b"],
  ["postgres:///db?host=here&port=5433&user=me&password=secret", "postgres://me@here:5433/db"],
  ["postgres://you@there:1/db?host=here&port=5433&user=me", "postgres://you@there:1/db"],
  ["postgres:///db?host=/var/run", "postgres:///db"],
])("%s is shown as %s", (url, name) => {
  expect(parseAddress(url).name).toBe(name);
});

test.each([
  ["", '"holdfast"'],
  ["?schema=mine", '"mine"'],
  ['?schema=my"own', '"my""own"'],
  [`?schema=${"x".repeat(63)}`, `"${"x".repeat(63)}"`],
])("the schema of %j is %s", (query, schema) => {
  const address = parseAddress(`postgres://host/db${query}`);
  expect(address.schema).toBe(schema);
  expect(address.url).toBe("postgres://host/db");
});

test.each(["", "%00", "x".repeat(64), "ä".repeat(32)])("a schema named %j is refused", (name) => {
  expect(() => parseAddress(`postgres://host/db?schema=${name}`)).toThrow(
    expect.objectContaining({ code: "STORE_URL_INVALID", message: expect.stringContaining("valid schema name") }),
  );
});

test.each([
  ["sslmode=require", "true"],
  ["sslmode=verify-full", "true"],
  ["sslmode=no-verify", null],
  ["sslmode=require&uselibpqcompat=false", "false"],
  ["application_name=me", null],
])("%s means what it means to psql", (query, compatible) => {
  const { url } = parseAddress(`postgres://host/db?${query}`);
  expect(new URL(url).searchParams.get("uselibpqcompat")).toBe(compatible);
});

test.each([
  ["nonsense", "it is not a URL"],
  ["mysql://host/db", 'begins with "mysql:"'],
  ["postgres://u:1#b@host/db", 'write "%23"'],
  ["postgres://u:1/b@host/db", 'write "%23"'],
  ["postgres://u:1?b@host/db", 'write "%23"'],
])("%s is no address, and says why", async (url, why) => {
  const refused = { code: "STORE_URL_INVALID", message: expect.stringContaining(why) };
  await expect(resolveAddress(url, {})).rejects.toMatchObject(refused);
  expect(() => parseAddress(url)).toThrow(expect.objectContaining(refused));
});

test.each<[url: string, env: Record<string, string>]>([
  ["postgres://me:own@db/x", {}],
  ["postgres://me@db/x?password=own", {}],
  ["postgres://me@db/x", { PGPASSWORD: "own" }],
])("%s with %j has a password, and no file is asked", async (url, env) => {
  const file = await passwordFile("*:*:*:*:of-the-file\n");
  expect(await resolveAddress(url, { ...env, PGPASSFILE: file })).toBe(url);
  expect(await resolveAddress("postgres://me@db/x", { PGPASSWORD: "", PGPASSFILE: file })).toContain("of-the-file");
});

test.each<[url: string, env: Record<string, string>, login: string]>([
  ["postgres://me@db:5433/x", {}, "db:5433:x:me"],
  ["postgres://me@db/x", {}, "db:5432:x:me"],
  ["postgres://me@db", {}, "db:5432:me:me"],
  ["postgres://m%40e@db/x", {}, "db:5432:x:m@e"],
  ["postgres:///", { PGHOST: "h", PGPORT: "1", PGUSER: "u", PGDATABASE: "d" }, "h:1:d:u"],
  ["postgres:///", { PGUSER: "u" }, "localhost:5432:u:u"],
  ["postgres://me@db:5433/x?host=h&port=1&user=u", { PGHOST: "no", PGPORT: "2" }, "h:1:x:u"],
])("the password of %s with %j is that of %s", async (url, env, login) => {
  const others = ["other:*:*:*", "*:9:*:*", "*:*:other:*", "*:*:*:other"].map((other) => `${other}:wrong\n`).join("");
  const file = await passwordFile(`${others}${login}:right\n`);
  const found = new URL(await resolveAddress(url, { ...env, PGPASSFILE: file }));
  expect(found.searchParams.get("password")).toBe("right");
});

test.each([
  ["*:*:*:*", null],
  ["*:*:*:*\n*:*:*:*:yes", "yes"],
  ["db:5432:x\\:me:no\n*:*:*:*:yes", "yes"],
  ["*:*:*:*:", ""],
  ["#*:*:*:*:no\r\n\r\n*:*:*:*:yes\r\n", "yes"],
  ["*:*:*:*:with:more", "with"],
  ["\\d\\b:5432:x:me:escaped", "escaped"],
  ["*:*:*:*:a\\:b\\\\c\\", "a:b\\c\\"],
])("a password file with %j has the password %j", (text, password) => {
  expect(passwordFor(text, { host: "db", port: "5432", database: "x", user: "me" })).toBe(password);
});

async function passwordFile(text: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "holdfast-address-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const file = join(folder, "pgpass");
  await writeFile(file, text, { mode: 0o600 });
  return file;
}
