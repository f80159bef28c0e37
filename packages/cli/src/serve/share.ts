import type { CallOutput, RemoteHost } from "@holdfast/server/client";
import { CommandError, EXIT } from "../exit.ts";
import { shortId } from "../short-id.ts";
import { resolveId } from "../store/session-id.ts";
import { paintFor } from "../terminal/colour.ts";
import { jsonText } from "../terminal/json.ts";
import { plainLine } from "../terminal/plain.ts";
import { tableLines } from "../terminal/table.ts";
import { ago } from "../terminal/time.ts";
import type { Item } from "../transcript/item.ts";
import { titleOf } from "../transcript/title.ts";
import { connect, isLoopback, onlyServer, sessionsOf } from "./connect.ts";

export interface ShareOptions {
  readonly server?: string;
  readonly list?: true;
  /** The id of a link, or its first characters. */
  readonly revoke?: string;
  /** How long the link is valid. */
  readonly expires?: number;
  /** Credentials in what it shows are replaced. */
  readonly redact?: true;
  readonly json?: true;
}

type Share = CallOutput<"listShares">["shares"][number];

/** `holdfast share`: makes, lists and revokes read-only links. */
export async function share(given: string | undefined, options: ShareOptions): Promise<void> {
  const host = await connect(options.server ?? onlyServer());
  try {
    const session = given === undefined ? null : await resolveId(sessionsOf(host), given);
    if (options.revoke !== undefined) await revoke(host, session, options.revoke);
    else if (options.list) await list(host, session, options.json === true);
    else if (session !== null) await make(host, session, options);
    else
      throw new CommandError(
        EXIT.usage,
        "USAGE",
        'Which session do you want to share? Give its id, or "latest". To see the links that exist: holdfast share --list. Nothing was touched.',
      );
  } finally {
    await host.close();
  }
}

async function make({ client }: RemoteHost, session: string, { expires, redact, json }: ShareOptions): Promise<void> {
  const body = {
    ...(expires === undefined ? {} : { expiresAt: new Date(Date.now() + expires).toISOString() }),
    ...(redact ? { redact } : {}),
  };
  const { token, ...made } = await client.call("createShare", { params: { id: session }, body });
  const url = `${client.url}/#token=${token}&to=${encodeURIComponent(`/${session}`)}`;
  process.stdout.write(`${json ? jsonText({ ...made, url }) : url}\n`);
  if (json) return;
  const until = made.expiresAt === null ? "until you revoke it" : `until ${localTime(made.expiresAt)}`;
  const lines = [
    `Anyone with this link can read session ${shortId(session)} ${until}: holdfast share --revoke ${made.id}`,
  ];
  if (isLoopback(new URL(client.url).hostname))
    lines.push("Only this machine can open it: that is where the server listens.");
  process.stderr.write(`${lines.join("\n")}\n`);
}

async function list(host: RemoteHost, session: string | null, isJson: boolean): Promise<void> {
  const shares = await sharesIn(host, session);
  if (isJson) {
    for (const one of shares) process.stdout.write(`${jsonText(one)}\n`);
    return;
  }
  if (shares.length === 0) {
    process.stdout.write(`No read-only links${session === null ? "" : ` to session ${shortId(session)}`}.\n`);
    return;
  }
  const titles = new Map<string, string>();
  for (const id of new Set(shares.map((one) => one.session))) titles.set(id, await titleIn(host, id));
  const now = Date.now();
  const rows = shares.map((one) => [
    one.id,
    shortId(one.session),
    ago(one.createdAt, now),
    one.expiresAt === null ? "never" : localTime(one.expiresAt),
    one.redact ? "redacted" : "all",
    titles.get(one.session)!,
  ]);
  const paint = paintFor(process.stdout);
  const columns = [
    { title: "link" },
    { title: "session" },
    { title: "made" },
    { title: "expires" },
    { title: "shows" },
    { title: "title", shrinksTo: 12 },
  ];
  const lines = tableLines(columns, rows, process.stdout.columns, (text, row) =>
    row === "title" ? paint("heading", text) : text,
  );
  process.stdout.write(`${lines.join("\n")}\n`);
}

async function revoke(host: RemoteHost, session: string | null, wanted: string): Promise<void> {
  const found = (await sharesIn(host, session)).filter(({ id }) => id.startsWith(wanted));
  const exact = found.find(({ id }) => id === wanted) ?? (found.length === 1 ? found[0]! : null);
  if (exact === null) {
    const what = found.length === 0 ? "No read-only link has" : `${found.length} read-only links have`;
    const message = `${what} the id ${JSON.stringify(plainLine(wanted).slice(0, 40))}. Nothing was changed. "holdfast share --list" shows the links.`;
    throw new CommandError(EXIT.notFound, "SHARE_UNKNOWN", message);
  }
  await host.client.call("removeShare", { params: { id: exact.session, share: exact.id } });
  process.stdout.write(`Revoked: the link to session ${shortId(exact.session)} no longer works.\n`);
}

async function sharesIn({ client }: RemoteHost, session: string | null): Promise<readonly Share[]> {
  const { shares } =
    session === null
      ? await client.call("listAllShares")
      : await client.call("listShares", { params: { id: session } });
  return shares;
}

/** The session may have been deleted since. */
async function titleIn({ client }: RemoteHost, id: string): Promise<string> {
  try {
    const { title } = await client.call("getSession", { params: { id } });
    const { items } = await client.call("getTranscript", { params: { id }, query: { from: 0, limit: 20 } });
    return titleOf(title, items as readonly Item[]) || "(no prompt yet)";
  } catch (error) {
    if ((error as { readonly code?: unknown }).code === "SESSION_NOT_FOUND") return "(deleted)";
    throw error;
  }
}

/** Such as `2026-11-23 18:30`, in the time zone of this machine. */
function localTime(at: string): string {
  const date = new Date(at);
  return new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 16).replace("T", " ");
}
