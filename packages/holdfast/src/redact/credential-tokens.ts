import { beginning, either, run, type Shape, sequence } from "./pattern.ts";

export const LETTERS = "A-Za-z0-9";
export const WORD = "A-Za-z0-9_\\-";
const DOTTED = "A-Za-z0-9_.\\-";

/** Longer than any issued token (Google's may have 2,048 characters). */
export const TOKEN_MAX = 4096;

interface Token {
  readonly kind: string;
  /** Separated by spaces. */
  readonly prefixes: string;
  /** At least this many characters of this class, then any number of the other. */
  readonly least: number;
  readonly of?: string;
  readonly rest?: string;
  readonly judge?: Shape["judge"];
}

export const all = (secret: string): number => secret.length;
export const withDigit = (secret: string): number => (/[0-9]/.test(secret) ? all(secret) : 0);

/** Names of CSS classes and packages also start like this: `sk-fading-circle-container`. */
function random(secret: string): number {
  return /[0-9]/.test(secret) && /[A-Z]|[A-Za-z0-9]{28}/.test(secret.slice("sk-".length)) ? all(secret) : 0;
}

const TOKENS: readonly Token[] = [
  { kind: "aws-key-id", prefixes: "AKIA ASIA ABIA ACCA", of: "A-Z0-9", least: 16, rest: LETTERS },
  { kind: "github", prefixes: "github_pat_", of: "A-Za-z0-9_", least: 36 },
  { kind: "github", prefixes: "ghp_ gho_ ghu_ ghs_ ghr_", least: 30, rest: DOTTED },
  {
    kind: "gitlab",
    prefixes: "glpat- gldt- glrt- glrtr- glptt- glcbt- gloas- glft- glimt- glagent- glsoat- glffct- glwt- GR1348941",
    of: WORD,
    least: 16,
    rest: DOTTED,
  },
  {
    kind: "slack",
    prefixes: "xoxa- xoxb- xoxc- xoxd- xoxe- xoxe. xoxo- xoxp- xoxr- xoxs- xapp-",
    of: "A-Za-z0-9%.\\-",
    least: 15,
    judge: withDigit,
  },
  { kind: "slack", prefixes: "hooks.slack.com/services/", of: "A-Za-z0-9/", least: 20 },
  { kind: "stripe", prefixes: "sk_live_ sk_test_ sk_prod_ rk_live_ rk_test_ rk_prod_ whsec_", least: 16 },
  { kind: "anthropic", prefixes: "sk-ant-", of: WORD, least: 20 },
  { kind: "openai", prefixes: "sk-proj- sk-svcacct- sk-admin-", of: WORD, least: 20 },
  // Many model providers share this prefix.
  { kind: "api-key", prefixes: "sk-", of: WORD, least: 20, judge: random },
  { kind: "google", prefixes: "AIza", of: WORD, least: 35 },
  { kind: "google", prefixes: "ya29.", of: WORD, least: 20, rest: DOTTED },
  { kind: "google", prefixes: "GOCSPX-", of: WORD, least: 20 },
  { kind: "google", prefixes: "1//0", of: WORD, least: 30 },
  { kind: "npm", prefixes: "npm_", least: 30 },
  { kind: "pypi", prefixes: "pypi-AgE", of: WORD, least: 40 },
  { kind: "huggingface", prefixes: "hf_ api_org_", least: 30 },
  { kind: "sendgrid", prefixes: "SG.", of: WORD, least: 16, rest: DOTTED, judge: withDigit },
  { kind: "digitalocean", prefixes: "dop_v1_ doo_v1_ dor_v1_", least: 40 },
  { kind: "docker", prefixes: "dckr_pat_ dckr_oat_", of: WORD, least: 20 },
  { kind: "age", prefixes: "AGE-SECRET-KEY-1", least: 40 },
  { kind: "api-key", prefixes: "gsk_ xai- pplx- r8_ fw_ tgp_v1_ nvapi-", of: WORD, least: 36, judge: withDigit },
  { kind: "slack", prefixes: "hooks.slack.com/workflows/ hooks.slack.com/triggers/", of: "A-Za-z0-9/", least: 20 },
  {
    kind: "webhook",
    prefixes: "discord.com/api/webhooks/ discordapp.com/api/webhooks/",
    of: "A-Za-z0-9/_\\-",
    least: 40,
  },
  { kind: "webhook", prefixes: "webhook.office.com/webhookb2/", of: "A-Za-z0-9/@_\\-", least: 40 },
  { kind: "databricks", prefixes: "dapi dose", of: "0-9a-f", least: 32, rest: "0-9a-f\\-" },
  { kind: "twilio", prefixes: "SK", of: "0-9a-f", least: 32 },
  { kind: "shopify", prefixes: "shpat_ shpca_ shppa_ shpss_ shptka_", least: 32 },
  { kind: "square", prefixes: "sq0atp- sq0csp- sq0idp-", of: WORD, least: 22 },
  { kind: "square", prefixes: "EAAA", of: WORD, least: 56, judge: withDigit },
  { kind: "facebook", prefixes: "EAAB EAAC EAAD EAAG EAAJ EAAM EAAE EAAI", least: 80, judge: withDigit },
  { kind: "mailgun", prefixes: "key- pubkey-", of: "0-9a-f_", least: 32 },
  { kind: "sendinblue", prefixes: "xkeysib- xsmtpsib-", of: WORD, least: 40 },
  { kind: "heroku", prefixes: "HRKU-", of: WORD, least: 32 },
  { kind: "linear", prefixes: "lin_api_ lin_oauth_ lin_wh_", least: 32 },
  { kind: "notion", prefixes: "ntn_ secret_", least: 40 },
  { kind: "vault", prefixes: "hvs. hvb. hvr.", of: WORD, least: 24 },
  {
    kind: "doppler",
    prefixes: "dp.pt. dp.st. dp.ct. dp.sa. dp.said. dp.scim. dp.audit.",
    of: WORD,
    least: 32,
    rest: DOTTED,
  },
  { kind: "fly", prefixes: "fm1r_ fm1a_ fm2_ fo1_", of: "A-Za-z0-9+/=_,\\-", least: 40 },
  { kind: "supabase", prefixes: "sbp_ sb_secret_", of: WORD, least: 30 },
  { kind: "sentry", prefixes: "sntrys_ sntryu_", of: "A-Za-z0-9+/=_\\-", least: 40 },
  { kind: "grafana", prefixes: "glsa_ glc_", of: "A-Za-z0-9+/=_", least: 32 },
  { kind: "new-relic", prefixes: "NRAK- NRII- NRJS- NRIQ- NRRA- NRSP-", of: WORD, least: 19 },
  { kind: "atlassian", prefixes: "ATATT3 ATCTT3 ATSTT3 ATOA3", of: "A-Za-z0-9_=\\-", least: 40 },
  { kind: "bitbucket", prefixes: "ATBB", of: "A-Za-z0-9_=\\-", least: 24 },
  { kind: "dropbox", prefixes: "sl.", of: WORD, least: 60, rest: DOTTED },
  { kind: "postman", prefixes: "PMAK-", of: WORD, least: 40 },
  { kind: "circleci", prefixes: "CCIPAT_ CCIPRJ_", of: "A-Za-z0-9_", least: 32 },
  { kind: "buildkite", prefixes: "bkua_ bkct_", least: 36 },
  { kind: "pulumi", prefixes: "pul-", of: "0-9a-f_", least: 40 },
  { kind: "planetscale", prefixes: "pscale_pw_ pscale_tkn_ pscale_oauth_", of: DOTTED, least: 30 },
  { kind: "nuget", prefixes: "oy2", of: "a-z0-9", least: 43 },
  { kind: "rubygems", prefixes: "rubygems_", of: "0-9a-f", least: 40 },
  { kind: "figma", prefixes: "figd_ figu_", of: WORD, least: 36 },
  { kind: "contentful", prefixes: "CFPAT-", of: WORD, least: 40 },
  { kind: "posthog", prefixes: "phx_ phs_", least: 40 },
  { kind: "duffel", prefixes: "duffel_live_ duffel_test_ EZAK EZTK shippo_live_ shippo_test_", of: WORD, least: 40 },
  {
    kind: "tailscale",
    prefixes: "tskey-auth- tskey-api- tskey-client- tskey-scim- tskey-webhook-",
    of: WORD,
    least: 20,
  },
  { kind: "onepassword", prefixes: "ops_eyJ", of: "A-Za-z0-9+/=_\\-", least: 60 },
  { kind: "razorpay", prefixes: "rzp_live_ rzp_test_", least: 14 },
  { kind: "alibaba", prefixes: "LTAI", least: 16, judge: withDigit },
  { kind: "langsmith", prefixes: "lsv2_pt_ lsv2_sk_", of: "A-Za-z0-9_", least: 40 },
  { kind: "hubspot", prefixes: "pat-na1- pat-eu1- pat-na2-", of: "0-9a-f\\-", least: 36 },
  { kind: "typeform", prefixes: "tfp_", of: WORD, least: 40 },
  { kind: "vercel", prefixes: "vcp_ vci_ vck_ vercel_blob_rw_", of: "A-Za-z0-9_", least: 24, judge: withDigit },
  { kind: "mapbox", prefixes: "sk.eyJ1", of: WORD, least: 20, rest: DOTTED },
  { kind: "firebase", prefixes: "APA91b", of: WORD, least: 100 },
  { kind: "twitch", prefixes: "oauth:", of: "a-z0-9", least: 30, judge: withDigit },
  { kind: "braintree", prefixes: "access_token$production$ access_token$sandbox$", of: "a-z0-9$", least: 40 },
  { kind: "sonarqube", prefixes: "sqp_ squ_ sqa_", of: "0-9a-f", least: 40 },
  { kind: "password-hash", prefixes: "$1$ $5$ $6$ $apr1$ $y$j", of: "A-Za-z0-9./$", least: 30 },
  { kind: "password-hash", prefixes: "$2a$ $2b$ $2y$", of: "A-Za-z0-9./$", least: 56 },
  { kind: "password-hash", prefixes: "$argon2i$ $argon2id$", of: "A-Za-z0-9./+$=,", least: 40 },
  { kind: "snyk", prefixes: "snyk_uat.", of: DOTTED, least: 40 },
];

/**
 * The body's alphabet decides which characters may not precede it, so a run of those characters is examined only once.
 */
function tokens({ kind, prefixes, of = LETTERS, least, rest = of, judge }: Token): Shape {
  const notAfter = /[_.%/]|\\-/.test(of) ? WORD : LETTERS;
  const body = sequence(run(of, least, least), run(rest, 0, TOKEN_MAX - least));
  const starts = prefixes.split(" ").map((prefix) => beginning(prefix, notAfter));
  return { kind, prefix: either(...starts), secret: body, ...(judge ? { judge } : {}) };
}

/** Tokens recognised by how they start. */
export function tokenShapes(): readonly Shape[] {
  return TOKENS.map(tokens);
}
