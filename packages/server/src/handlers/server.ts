import { isOwnAddress } from "../access/check-request.ts";
import { refuse } from "../access/request-error.ts";
import { openApiDocument } from "../openapi/document.ts";
import { PROOF_HEADER } from "../proof/proof.ts";
import type { Handlers, RequestContext } from "./context.ts";

let document: Buffer<ArrayBuffer> | null = null;

export const serverHandlers: Handlers<
  | "getServer"
  | "getOpenApi"
  | "proveServer"
  | "exchangeToken"
  | "forgetCookie"
  | "listAllShares"
  | "listShares"
  | "createShare"
  | "removeShare"
> = {
  getServer: (_input, { caller, hosting, version, facts }) => {
    const isOwner = caller?.access === "owner";
    const { host } = hosting;
    return {
      status: 200,
      body: {
        version,
        store: isOwner ? host.store : null,
        warnings: isOwner ? host.warnings : [],
        stopping: hosting.isStopping,
        access: isOwner ? "owner" : "read",
        session: caller?.access === "read" ? caller.session : null,
        models: isOwner ? { default: facts.model } : null,
        cwd: isOwner ? facts.cwd : null,
      },
    };
  },
  getOpenApi: (_input, { version, c }) => {
    // Anybody may ask for it, as often as they like, and it takes a while to make.
    document ??= Buffer.from(JSON.stringify(openApiDocument(version)));
    return { response: c.body(document, 200, { "content-type": "application/json" }) };
  },
  proveServer: ({ query: { nonce, client } }, { c, credentials, allowed }) => {
    // Every request has one, or is refused.
    const address = c.req.header("host")!.toLowerCase();
    if (!isOwnAddress(address, c.env.incoming.socket, allowed.hosts))
      throw refuse(
        "HOST_REFUSED",
        "The server does not listen at the address that you wanted to reach. Nothing was touched. If a proxy or a tunnel leads there, start the server with --allow-host and that address.",
      );
    const proof = credentials.prove(nonce, client, address);
    if (proof === null) throw refuse("TOKEN_MISSING", WRONG_TOKEN);
    c.header(PROOF_HEADER, proof);
    return { status: 204 };
  },
  exchangeToken: ({ body: { token } }, context) => {
    const cookie = context.credentials.cookieFor(token);
    if (cookie === null) throw refuse("TOKEN_MISSING", WRONG_TOKEN);
    setCookie(context, cookie, "");
    return { status: 204 };
  },
  forgetCookie: (_input, context) => {
    setCookie(context, "", "; Max-Age=0");
    return { status: 204 };
  },
  listAllShares: (_input, { credentials }) => ({ status: 200, body: { shares: credentials.shares() } }),
  listShares: async ({ params: { id } }, { credentials, hosting }) => {
    await assertExists(id, hosting);
    return { status: 200, body: { shares: credentials.shares(id) } };
  },
  createShare: async ({ params: { id }, body: { expiresAt, redact } }, { credentials, hosting }) => {
    await assertExists(id, hosting);
    return { status: 201, body: credentials.share(id, expiresAt ?? null, redact === true) };
  },
  removeShare: ({ params: { id, share } }, { credentials, streams }) => {
    credentials.unshare(id, share);
    streams.endInvalid(credentials);
    return { status: 204 };
  },
};

export const WRONG_TOKEN =
  'The token is not one of this server\'s. Nothing was touched. "holdfast serve --show-token" shows it.';

/** A page over HTTPS, behind a proxy, gets a cookie that is never sent in clear text. */
function setCookie({ c, cookieName }: RequestContext, value: string, rest: string): void {
  const isSecure = c.req.header("origin")?.startsWith("https:") === true;
  const flags = `; Path=/; HttpOnly; SameSite=Strict${isSecure ? "; Secure" : ""}${rest}`;
  c.header("set-cookie", `${cookieName()}=${value}${flags}`);
}

async function assertExists(id: string, { host }: RequestContext["hosting"]): Promise<void> {
  // Throws SESSION_NOT_FOUND with the store's own words.
  if (!(await host.sessions.has(id))) await host.sessions.read(id);
}
