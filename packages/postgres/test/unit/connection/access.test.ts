import { execFileSync } from "node:child_process";
import { chmod, chown, copyFile, mkdtemp, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type JournalRecord, newId } from "holdfast";
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { parseAddress, resolveAddress } from "../../../src/connection/address.ts";
import { passwordFor } from "../../../src/connection/pgpass.ts";
import { parseService } from "../../../src/connection/service.ts";
import { grants, openPostgresStore, openStore } from "../../../src/index.ts";
import { type Server, startServer } from "../../server/server.ts";

let server: Server;
let folder: string;
let hasOpenssl = true;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "holdfast-tls-"));
  try {
    makeCertificate("127.0.0.1");
  } catch {
    hasOpenssl = false;
  }
  const ssl = hasOpenssl ? ["ssl=on", "ssl_cert_file=server.crt", "ssl_key_file=server.key"] : [];
  server = await startServer(["fsync=off", ...ssl], async (data) => {
    if (!hasOpenssl) return;
    const { uid, gid } = await stat(data);
    for (const name of ["server.crt", "server.key"]) {
      await copyFile(join(folder, name), join(data, name));
      await chown(join(data, name), uid, gid);
      await chmod(join(data, name), 0o600);
    }
    // Whoever comes over TLS alone is let in as `secure`.
    await writeFile(
      join(data, "pg_hba.conf"),
      [
        "hostssl all secure 127.0.0.1/32 password",
        "host all secure 127.0.0.1/32 reject",
        "host all all 127.0.0.1/32 password",
      ].join("\n"),
    );
  });
  await server.query("CREATE ROLE secure SUPERUSER LOGIN PASSWORD 'secret'");
});
afterAll(async () => {
  await server.stop();
  await rm(folder, { recursive: true });
});
afterEach(() => vi.unstubAllEnvs());

/** Signed by itself, good for this address alone. */
function makeCertificate(ip: string): void {
  const name = ["-subj", "/CN=holdfast test", "-addext", `subjectAltName=IP:${ip}`];
  const files = ["-keyout", join(folder, "server.key"), "-out", join(folder, "server.crt")];
  execFileSync("openssl", ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", ...name, ...files], {
    stdio: "pipe",
  });
}

function urlOf(user: string, query: Record<string, string> = {}, password = "secret"): string {
  const url = new URL(server.url);
  url.username = user;
  url.password = password;
  for (const [key, value] of Object.entries(query)) url.searchParams.set(key, value);
  return url.href;
}

const works = async (url: string): Promise<void> => {
  const store = await openPostgresStore(url, { monthsAhead: 0, connections: 1 });
  await (await store.create(newId(), [{ kind: "note" }])).close();
  await store.close();
};

describe("TLS", () => {
  test("the words of psql: require encrypts, verify-full looks who is there, and says why not", async (context) => {
    if (!hasOpenssl) return context.skip("not run: there is no openssl here to make a certificate with");
    const sslrootcert = join(folder, "server.crt");
    for (const sslmode of ["require", "prefer"]) await works(urlOf("secure", { sslmode }));
    await works(urlOf("secure", { sslmode: "verify-ca", sslrootcert }));
    await works(urlOf("secure", { sslmode: "verify-full", sslrootcert }));
    const untrusted = { code: "STORE_FORBIDDEN", message: expect.stringMatching(/trusted.*sslrootcert/) };
    await expect(works(urlOf("secure", { sslmode: "verify-full" }))).rejects.toMatchObject(untrusted);
    await expect(works(urlOf("secure", { sslmode: "disable" }))).rejects.toMatchObject({ code: "STORE_FORBIDDEN" });
    await expect(works(urlOf("secure", { sslmode: "verify-ca" }))).rejects.toMatchObject({
      code: "STORE_URL_INVALID",
      message: expect.stringContaining("sslrootcert"),
    });
    const missing = { sslmode: "verify-full", sslrootcert: join(folder, "nothing.crt") };
    await expect(works(urlOf("secure", missing))).rejects.toMatchObject({ code: "STORE_URL_INVALID" });
  });
});

describe("passwords", () => {
  test("from PGPASSWORD, from a password file, and none: told, and never shown", async () => {
    vi.stubEnv("PGPASSWORD", "secret");
    await works(urlOf("postgres", {}, ""));
    vi.stubEnv("PGPASSWORD", undefined);
    const file = join(folder, "pgpass");
    await writeFile(file, `127.0.0.1:${server.port}:*:postgres:secret\n`, { mode: 0o600 });
    vi.stubEnv("PGPASSFILE", file);
    await works(urlOf("postgres", {}, ""));
    vi.stubEnv("PGPASSFILE", join(folder, "none"));
    await expect(works(urlOf("postgres", {}, ""))).rejects.toMatchObject({ code: "STORE_FORBIDDEN" });
    const wrong = await works(urlOf("postgres", {}, "hunter2")).catch((error: unknown) => error);
    expect(wrong).toMatchObject({ code: "STORE_FORBIDDEN" });
    expect(String(wrong)).not.toContain("hunter2");
  });

  test("the first line of a password file that fits is taken, stars fit everything, and a file that others can read is not", async () => {
    const login = { host: "db", port: "5432", database: "a:b", user: "me" };
    expect(passwordFor("# no\nother:*:*:*:wrong\ndb:5432:a\\:b:me:pa\\:ss\\\\word\n*:*:*:*:late\n", login)).toBe(
      "pa:ss\\word",
    );
    expect(passwordFor("db:1:*:*:x\n", login)).toBeNull();
    const file = join(folder, "open");
    await writeFile(file, "*:*:*:*:secret\n");
    await chmod(file, 0o644);
    expect(await resolveAddress("postgres://me@db/x", { PGPASSFILE: file })).not.toContain("secret");
    await chmod(file, 0o600);
    expect(await resolveAddress("postgres://me@db/x", { PGPASSFILE: file })).toContain("password=secret");
    await writeFile(file, "\\:\\:1:5432:x:me:sixth\n");
    expect(await resolveAddress("postgres://me@[::1]/x", { PGPASSFILE: file })).toContain("password=sixth");
  });

  test("a store's address is shown without its password", async () => {
    expect(parseAddress("postgres://me:hunter2@db.example:5433/app?sslmode=require").name).toBe(
      "postgres://me@db.example:5433/app",
    );
    expect(() => parseAddress("postgres://me:hunter2@[/app")).toThrow(
      expect.objectContaining({ code: "STORE_URL_INVALID" }),
    );
  });
});

describe("service files", () => {
  const SERVICES =
    "# ours\n[other]\nhost=elsewhere\n\n[agents]\nhost=db.example\nport = 5433\ndbname=app\nuser=me\npassword=hunter2\nsslmode=verify-full\n[last]\nhost=x\n";

  test("a service is what stands under its name", () => {
    expect(Object.fromEntries(parseService(SERVICES, "agents")!)).toEqual({
      host: "db.example",
      port: "5433",
      dbname: "app",
      user: "me",
      password: "hunter2",
      sslmode: "verify-full",
    });
    expect(parseService(SERVICES, "none")).toBeNull();
  });

  test("what stands in the address counts first, and the password is shown nowhere", async () => {
    const file = join(folder, "services");
    await writeFile(file, SERVICES);
    const env = { PGSERVICEFILE: file };
    const resolved = await resolveAddress("postgres:///?service=agents&schema=mine", env);
    expect(parseAddress(resolved)).toMatchObject({
      name: "postgres://me@db.example:5433/app?schema=mine",
      schema: '"mine"',
    });
    const named = new URL(await resolveAddress("postgres://you@host/base?service=agents", env));
    expect([named.searchParams.get("host"), named.searchParams.get("user"), named.pathname]).toEqual([
      null,
      null,
      "/base",
    ]);
    expect(await resolveAddress("postgres://host/base", { ...env, PGSERVICE: "agents" })).toBe("postgres://host/base");
    expect(await resolveAddress("postgres:///", { ...env, PGSERVICE: "agents" })).toContain("db.example");
    await expect(resolveAddress("postgres:///?service=none", env)).rejects.toMatchObject({
      code: "STORE_URL_INVALID",
      message: expect.stringContaining('"none"'),
    });
  });

  test("without a service file, with one that is none, and without a name: what was looked for, and where, and nothing was asked", async () => {
    const gone = join(folder, "gone", "pg_service.conf");
    const wrong = (address: string, env: Record<string, string>) => resolveAddress(address, env);
    for (const [address, env] of [
      ["postgres:///?service=agents", { PGSERVICEFILE: gone }],
      ["postgres://me:hunter2@host/base?service=agents", { PGSERVICEFILE: gone }],
      ["postgres:///", { PGSERVICE: "agents", PGSERVICEFILE: gone }],
      ["postgres:///?service=agents", { PGSERVICEFILE: gone, PGSYSCONFDIR: join(folder, "gone") }],
      ["postgres:///?service=agents", { PGSERVICEFILE: folder }],
      ["postgres:///?service=agents", { PGSERVICEFILE: "/dev/zero" }],
      ["postgres:///?service=", { PGSERVICEFILE: gone }],
    ] as const) {
      const error = await wrong(address, env).catch((reason: unknown) => reason);
      expect(error, address).toMatchObject({ code: "STORE_URL_INVALID" });
      const { message } = error as Error;
      expect(message).not.toContain("hunter2");
      expect(message).toContain(env.PGSERVICEFILE);
      if (address !== "postgres:///?service=") expect(message).toContain('"agents"');
    }
    // No file of the user's own is no hindrance where the system has one.
    await writeFile(join(folder, "pg_service.conf"), SERVICES);
    expect(
      await resolveAddress("postgres:///?service=agents", { PGSERVICEFILE: gone, PGSYSCONFDIR: folder }),
    ).toContain("db.example");
  });

  test("a file of passwords that is none is passed over", async () => {
    for (const file of [folder, "/dev/zero", join(folder, "gone")])
      expect(await resolveAddress("postgres://me@host/base", { PGPASSFILE: file })).toBe("postgres://me@host/base");
  });

  test("a store is opened by one", async () => {
    const file = join(folder, "real");
    await writeFile(
      file,
      `[real]\nhost=127.0.0.1\nport=${server.port}\ndbname=postgres\nuser=postgres\npassword=secret\n`,
    );
    vi.stubEnv("PGSERVICEFILE", file);
    await works("postgres:///?service=real");
  });
});

describe("roles", () => {
  const SCHEMA = "shared";
  const open = (user: string, password = "secret") =>
    openPostgresStore(urlOf(user, { schema: SCHEMA }, password), { monthsAhead: 0, connections: 2 });

  test("a worker does all its work and cannot drop, create, change or remove a line; a reader lists, searches, follows and reads, and nothing else", async () => {
    for (const role of ["a worker", "reader"]) await server.query(`CREATE ROLE "${role}" LOGIN PASSWORD 'secret'`);
    // Without tables, a worker's role cannot make them.
    await expect(open("a worker")).rejects.toMatchObject({ code: "STORE_FORBIDDEN" });
    await (await open("postgres")).close();
    await expect(open("a worker")).rejects.toMatchObject({ code: "STORE_FORBIDDEN" });
    for (const statement of grants(SCHEMA, { worker: "a worker", reader: "reader" })) await server.query(statement);

    const worker = await open("a worker");
    const journal = await worker.create(newId(), [{ kind: "note", text: "first" }]);
    await journal.append([{ kind: "note" }, { kind: "note" }], { key: "k" });
    await journal.epoch(() => [{ kind: "epoch" }]);
    await journal.append({ kind: "note" }, { durability: "process" });
    await journal.flush();

    const reader = await open("reader");
    expect((await reader.list()).sessions).toMatchObject([
      { id: journal.id, head: journal.head, holder: { pid: process.pid } },
    ]);
    expect((await reader.read(journal.id)).records.map(({ kind }) => kind)).toEqual(["segment", "epoch", "note"]);
    expect(await reader.verify(journal.id)).toMatchObject({ beingWritten: true, damaged: [] });
    expect(await reader.holder(journal.id)).toMatchObject({ pid: process.pid });
    const followed: JournalRecord[] = [];
    const following = (async () => {
      for await (const record of reader.follow(journal.id)) {
        followed.push(record);
        if (record["text"] === "last") return;
      }
    })();
    await journal.append({ kind: "note", text: "last" });
    await following;
    expect(followed.map(({ seq }) => seq)).toEqual(Array.from({ length: journal.head }, (_, i) => i + 1));
    const forbidden = { code: "STORE_FORBIDDEN", message: expect.stringMatching(/permission denied.*permissions/) };
    await expect(reader.create(newId(), [])).rejects.toMatchObject(forbidden);
    await journal.close();
    await expect(reader.open(journal.id)).rejects.toMatchObject(forbidden);
    await expect(reader.delete(journal.id)).rejects.toMatchObject(forbidden);
    await reader.close();

    const { journal: again } = await worker.open(journal.id);
    await again.close();
    await worker.delete(journal.id);
    await expect(worker.gc({ graceMs: 0 })).rejects.toMatchObject(forbidden);
    await worker.close();

    for (const [user, statement] of [
      ["a worker", "DROP TABLE shared.lines"],
      ["a worker", "DROP SCHEMA shared CASCADE"],
      ["a worker", "CREATE TABLE shared.mine ()"],
      ["a worker", "TRUNCATE shared.lines"],
      ["a worker", "DELETE FROM shared.lines"],
      ["a worker", "UPDATE shared.lines SET line = ''"],
      ["a worker", "DELETE FROM shared.heads"],
      ["reader", "UPDATE shared.heads SET owner = NULL"],
      ["reader", "INSERT INTO shared.lines VALUES (gen_random_uuid(), 1, '')"],
      ["reader", "DELETE FROM shared.texts"],
    ] as const) {
      await expect(as(user, statement), `${user}: ${statement}`).rejects.toMatchObject({ code: "42501" });
    }
  });

  test("both search", async () => {
    const worker = await openStore(urlOf("a worker", { schema: SCHEMA }), { monthsAhead: 0 });
    const session = await worker.create({ dialect: "anthropic" });
    const turn = await session.startTurn({ role: "user", content: "where is the needle" });
    await turn.end();
    await session.close();
    expect(await Array.fromAsync(worker.search("needle"))).toHaveLength(1);
    const late = await worker.create({ dialect: "anthropic" });
    await (await late.startTurn({ role: "user", content: "where is the thimble" })).end();
    await late.close();
    await worker.close();
    const reader = await openStore(urlOf("reader", { schema: SCHEMA }), { monthsAhead: 0 });
    expect(await Array.fromAsync(reader.search("needle"))).toHaveLength(1);
    expect(await Array.fromAsync(reader.search("thimble"))).toHaveLength(1);
    expect(await Array.fromAsync(reader.search("haystack"))).toHaveLength(0);
    await reader.close();
  });

  async function as(user: string, statement: string): Promise<void> {
    await server.query(`SET ROLE "${user}"; ${statement}`);
  }
});
