import { readFile, stat } from "node:fs/promises";
import { homedir, userInfo } from "node:os";
import { join } from "node:path";
import { codeOf } from "./failure.ts";

type Environment = Readonly<Record<string, string | undefined>>;

/** Where the password is for. */
export interface Login {
  readonly host: string;
  readonly port: string;
  readonly database: string;
  readonly user: string;
}

/** Who may read a file beside its owner: with any of these bits set, `psql` does not take passwords from it, and neither do we. */
const OTHERS = 0o077;

/** From `PGPASSFILE`, or `~/.pgpass`, which the driver is going to read no more. Null: there is none for it. */
export async function readPassword(url: URL, env: Environment): Promise<string | null> {
  const path = env["PGPASSFILE"] ?? join(homedir(), ".pgpass");
  try {
    const found = await stat(path);
    const { mode } = found;
    // Nor does `psql`: and a pipe would be waited for.
    if (!found.isFile()) return null;
    if (process.platform !== "win32" && (mode & OTHERS) !== 0) return null;
    return passwordFor(await readFile(path, "utf8"), loginOf(url, env));
  } catch (error) {
    const code = codeOf(error);
    if (code === "ENOENT" || code === "ENOTDIR" || code === "EACCES") return null;
    throw error;
  }
}

/** The first line that fits, `host:port:database:user:password`, where `*` fits everything, and `\` takes its meaning from a `:` or a `\`. Pure. */
export function passwordFor(text: string, login: Login): string | null {
  const wanted = [login.host, login.port, login.database, login.user];
  for (const line of text.split(/\r?\n/)) {
    if (line === "" || line.startsWith("#")) continue;
    const fields = line.match(/(?:\\.|[^:\\])*(?::|$)/g)?.map((field) => field.replace(/:$/, "")) ?? [];
    const [, ...rest] = fields.slice(3);
    const plain = (field: string): string => field.replace(/\\(.)/g, "$1");
    const fits = wanted.every((value, i) => fields[i] === "*" || plain(fields[i] ?? "") === value);
    if (fits && rest[0] !== undefined) return plain(rest[0]);
  }
  return null;
}

function loginOf(url: URL, env: Environment): Login {
  const given = (key: string, standing: string, variable: string): string | undefined =>
    url.searchParams.get(key) || standing || env[variable] || undefined;
  const user = given("user", decodeURIComponent(url.username), "PGUSER") ?? userInfo().username;
  return {
    host: given("host", decodeURIComponent(url.hostname).replace(/^\[(.*)\]$/, "$1"), "PGHOST") ?? "localhost",
    port: given("port", url.port, "PGPORT") ?? "5432",
    database: given("database", decodeURIComponent(url.pathname.slice(1)), "PGDATABASE") ?? user,
    user,
  };
}
