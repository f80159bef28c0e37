import {
  beginning,
  either,
  nothing,
  type Piece,
  repeated,
  run,
  sequence,
  text,
  unless,
  upTo,
  word,
} from "./pattern.ts";

/** What a credential of one kind looks like. The shapes are those that the issuers document, as of 2026. */
export interface Shape {
  readonly kind: string;
  /** What stays in front of the secret: it says what the secret is for. */
  readonly keep?: Piece;
  readonly secret: Piece;
  /** What has to follow. */
  readonly behind?: Piece;
  /** How many characters of the found secret are one; 0 if it is none. Without it, all of them. `next` is the character behind it, if there is one. */
  readonly judge?: (secret: string, next: string) => number;
}

const LETTERS = "A-Za-z0-9";
const WORD = "A-Za-z0-9_\\-";

/** Longer than any token that is issued (Google's may have 2,048 characters). */
const TOKEN_MAX = 4096;
const PEM_MAX = 16_384;

interface Token {
  readonly kind: string;
  readonly prefixes: readonly string[];
  /** So many characters of this class at least, then any number of the other. */
  readonly least: number;
  readonly of?: string;
  readonly rest?: string;
  readonly judge?: Shape["judge"];
}

const all = (secret: string): number => secret.length;
const withDigit = (secret: string): number => (/[0-9]/.test(secret) ? all(secret) : 0);

/** Names of CSS classes and packages begin like this, too: `sk-fading-circle-container`. */
function random(secret: string): number {
  return /[0-9]/.test(secret) && /[A-Z]|[A-Za-z0-9]{28}/.test(secret.slice("sk-".length)) ? all(secret) : 0;
}

const TOKENS: readonly Token[] = [
  { kind: "aws-key-id", prefixes: ["AKIA", "ASIA", "ABIA", "ACCA"], of: "A-Z0-9", least: 16, rest: LETTERS },
  { kind: "github", prefixes: ["github_pat_"], of: "A-Za-z0-9_", least: 36, rest: "A-Za-z0-9_" },
  { kind: "github", prefixes: ["ghp_", "gho_", "ghu_", "ghs_", "ghr_"], least: 30, rest: "A-Za-z0-9_.\\-" },
  {
    kind: "gitlab",
    prefixes: [
      ...["glpat-", "gldt-", "glrt-", "glrtr-", "glptt-", "glcbt-", "gloas-", "glft-", "glimt-", "glagent-"],
      ...["glsoat-", "glffct-", "glwt-", "GR1348941"],
    ],
    of: WORD,
    least: 16,
    rest: "A-Za-z0-9_.\\-",
  },
  {
    kind: "slack",
    prefixes: ["xoxa-", "xoxb-", "xoxc-", "xoxd-", "xoxe-", "xoxe.", "xoxo-", "xoxp-", "xoxr-", "xoxs-", "xapp-"],
    of: "A-Za-z0-9%.\\-",
    least: 15,
    rest: "A-Za-z0-9%.\\-",
    judge: withDigit,
  },
  { kind: "slack", prefixes: ["hooks.slack.com/services/"], of: "A-Za-z0-9/", least: 20, rest: "A-Za-z0-9/" },
  {
    kind: "stripe",
    prefixes: ["sk_live_", "sk_test_", "sk_prod_", "rk_live_", "rk_test_", "rk_prod_", "whsec_"],
    least: 16,
  },
  { kind: "anthropic", prefixes: ["sk-ant-"], of: WORD, least: 20, rest: WORD },
  { kind: "openai", prefixes: ["sk-proj-", "sk-svcacct-", "sk-admin-"], of: WORD, least: 20, rest: WORD },
  // Many providers of models share this one.
  { kind: "api-key", prefixes: ["sk-"], of: WORD, least: 20, rest: WORD, judge: random },
  { kind: "google", prefixes: ["AIza"], of: WORD, least: 35, rest: WORD },
  { kind: "google", prefixes: ["ya29."], of: WORD, least: 20, rest: "A-Za-z0-9_.\\-" },
  { kind: "google", prefixes: ["GOCSPX-"], of: WORD, least: 20, rest: WORD },
  { kind: "google", prefixes: ["1//0"], of: WORD, least: 30, rest: WORD },
  { kind: "npm", prefixes: ["npm_"], least: 30 },
  { kind: "pypi", prefixes: ["pypi-AgE"], of: WORD, least: 40, rest: WORD },
  { kind: "huggingface", prefixes: ["hf_", "api_org_"], least: 30 },
  { kind: "sendgrid", prefixes: ["SG."], of: WORD, least: 16, rest: "A-Za-z0-9_.\\-", judge: withDigit },
  { kind: "digitalocean", prefixes: ["dop_v1_", "doo_v1_", "dor_v1_"], least: 40 },
  { kind: "docker", prefixes: ["dckr_pat_", "dckr_oat_"], of: WORD, least: 20, rest: WORD },
  { kind: "age", prefixes: ["AGE-SECRET-KEY-1"], least: 40 },
  { kind: "api-key", prefixes: ["gsk_", "xai-", "pplx-"], least: 40 },
];

/** The alphabet of the body decides what may not stand before: so a run of those characters is looked at once, whatever it holds. */
function tokens({ kind, prefixes, of = LETTERS, least, rest = of, judge }: Token): Shape {
  const notAfter = /[_.%/]|\\-/.test(of) ? WORD : LETTERS;
  const body = sequence(run(of, least, least), run(rest, 0, TOKEN_MAX - least));
  const starts = prefixes.map((prefix) => beginning(prefix, notAfter));
  return { kind, secret: sequence(either(...starts), body), ...(judge ? { judge } : {}) };
}

const JWT: Shape = {
  kind: "jwt",
  secret: sequence(
    beginning("eyJ", WORD),
    run(WORD, 10, 2048),
    text("."),
    run(WORD, 10, 8192),
    text("."),
    run(`${WORD}.`, 10, TOKEN_MAX),
  ),
};

/** As `aws iam create-access-key` and the console's file have it: the id, and the key behind it. */
const AWS_PAIR: Shape = {
  kind: "aws-secret-key",
  secret: sequence(
    either(beginning("AKIA", LETTERS), beginning("ASIA", LETTERS)),
    run("A-Z0-9", 16, 16),
    run("\\s,:|\"'", 1, 8),
    run("A-Za-z0-9/+", 40, 40),
  ),
  behind: unless("A-Za-z0-9/+="),
};

const QUOTES = run("\\\\\"'`", 0, 2);
const SPACES = run(" \\t", 0, 8);
const ASSIGNED = sequence(QUOTES, SPACES, run(":=", 1, 2), run(">", 0, 1), SPACES, QUOTES);

const AWS_SECRET: Shape = {
  kind: "aws-secret-key",
  keep: sequence(word("secret"), run("_\\-", 0, 1), word("access"), run("_\\-", 0, 1), word("key"), ASSIGNED),
  secret: run("A-Za-z0-9/+", 40, 40),
  behind: unless("A-Za-z0-9/+="),
};

/** The ends of names: `DB_PASSWORD`, `clientSecret`, `x-api-key`. */
const NAMES = either(
  ...["password", "passwd", "passphrase", "pwd", "secret", "token", "credential", "credentials"].map(word),
  sequence(
    either(...["api", "access", "secret", "private", "account", "encryption", "signing", "auth"].map(word)),
    run("_\\-", 0, 1),
    word("key"),
  ),
);

const OUTSIDE = "\\s\"'`,;<>()\\[\\]{}&|\\\\";
const VALUE = `^${OUTSIDE}`;
const VALUE_MAX = 128;
/** Longer ones have fewer characters to choose from. */
const OPAQUE = "A-Za-z0-9+/_.~\\-";

/** Before a bracket it is code: a call, or an index. Or it stands in front of a marker. */
const VALUE_END = upTo("\\s\"'`,;<>){}&|\\\\\\]");

/** What is assigned to such a name is mostly no secret but code, a type, or a place to put one. */
function assigned(value: string): number {
  if (!/[A-Za-z]/.test(value) || !/[0-9@#$%^*~+]/.test(value)) return 0;
  if (/^(?:[$%*/.~]|-----|u?int\d|float\d|bigu?int)/i.test(value)) return 0;
  if (value.length >= 40) return all(value);
  const isMember = /^[A-Za-z_$][\w$]*(?:\??\.[A-Za-z_$][\w$]*)+$/.test(value);
  const isConstant = /^[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+$/.test(value);
  return isMember || isConstant ? 0 : all(value);
}

const ASSIGNMENT: Shape = {
  kind: "secret",
  keep: sequence(NAMES, ASSIGNED),
  secret: run(VALUE, 8, VALUE_MAX),
  behind: VALUE_END,
  judge: assigned,
};
const LONG_ASSIGNMENT: Shape = {
  ...ASSIGNMENT,
  secret: sequence(run(OPAQUE, VALUE_MAX - 2, TOKEN_MAX), run("=", 0, 2)),
};
const FLAG: Shape = { ...ASSIGNMENT, keep: sequence(text("--"), NAMES, run(" \\t", 1, 4), QUOTES) };

const CREDENTIAL = "A-Za-z0-9._~+/\\-";
const CREDENTIALS_MAX = sequence(run(CREDENTIAL, 8, TOKEN_MAX), run("=", 0, 2));
const AUTHORIZATION = sequence(word("authorization"), ASSIGNED);
/** Schemes whose credentials may be short. */
export const SCHEMES: readonly string[] = ["bearer", "basic", "token", "bot"];
const SCHEME = sequence(either(...SCHEMES.map(word)), run(" \\t", 1, 4));
/** Negotiate, NTLM, DPoP, ApiKey, SSWS, and whatever others there are. */
const ANY_SCHEME = sequence(run("A-Za-z0-9\\-", 2, 24), run(" \\t", 1, 4));

/** "Authorization: Basic authentication" is prose. */
const mixed = (secret: string): number => (/[0-9A-Z]/.test(secret) ? all(secret) : 0);
const long = (secret: string): number => (secret.length >= 20 ? withDigit(secret) : 0);

const HEADERS: readonly Shape[] = [
  { kind: "authorization", keep: sequence(AUTHORIZATION, SCHEME), secret: CREDENTIALS_MAX, judge: mixed },
  { kind: "authorization", keep: sequence(AUTHORIZATION, ANY_SCHEME), secret: CREDENTIALS_MAX, judge: long },
  { kind: "authorization", keep: AUTHORIZATION, secret: CREDENTIALS_MAX, judge: long },
  {
    kind: "authorization",
    keep: sequence(word("bearer"), run(" \\t", 1, 4)),
    secret: CREDENTIALS_MAX,
    judge: long,
  },
];

const USER = "^\\s:/@=?#,\"'`<>()\\[\\]{}|\\\\";
const PASSWORD = run("^\\s/?#,\"'`<>()\\[\\]{}|\\\\", 1, 256);
const BEFORE_HOST: Piece = { ...nothing, full: "(?=@)", open: "$" };
const isPlace = (secret: string): boolean => /^[$%*]/.test(secret);

/** Where the user's name is long, it is a token itself. */
const URLS: readonly Shape[] = [
  {
    kind: "url-password",
    keep: text("://"),
    secret: sequence(run(USER, 20, 128), text(":"), PASSWORD),
    behind: BEFORE_HOST,
  },
  {
    kind: "url-password",
    keep: sequence(text("://"), run(USER, 0, 19), text(":")),
    secret: PASSWORD,
    behind: BEFORE_HOST,
    judge: (secret) => (isPlace(secret) ? 0 : all(secret)),
  },
];

/** What stands between the lines of a key: line breaks and their escapes, the headers of old formats, quotes, line numbers, marks of a diff or a quotation. */
const PEM_BODY = `(?:[A-Za-z0-9+/=\\s\\\\:,.()"'@<>|→]|-(?!----))`;
const pemLine = (edge: string): Piece =>
  sequence(
    text(`-----${edge} `),
    run("A-Z0-9 ", 0, 40),
    text("PRIVATE KEY"),
    either(text(" BLOCK"), nothing),
    text("-----"),
  );

const PEM: Shape = {
  kind: "private-key",
  secret: sequence(pemLine("BEGIN"), repeated(PEM_BODY, 0, PEM_MAX), either(pemLine("END"), nothing)),
  judge: keyChars,
};

const BETWEEN = String.raw`(?:\\[nrt]|[\s"'+,>|→]){0,24}`;
const NUMBERED = String.raw`(?:\d{1,6}[\s→|:]{1,8})?`;
const HEADERS_OF_PEM = new RegExp(String.raw`(?:${BETWEEN}${NUMBERED}[A-Za-z][A-Za-z\-]{0,30}: [^\n\\]{0,200})*`, "y");
const LINE_OF_PEM = new RegExp(String.raw`${BETWEEN}${NUMBERED}[A-Za-z0-9+/=]{32,}(?![\w[\-])`, "y");
const LAST_OF_PEM = new RegExp(String.raw`${BETWEEN}${NUMBERED}([A-Za-z0-9+/=]{1,31})(?![\w[\-])`, "y");

/** Without its end, it was cut off: what is not of the key stays. Or it is not there, and only spoken of. */
function keyChars(found: string, next: string): number {
  if (found.endsWith("-----") && found.includes("-----END ")) return all(found);
  const text = found + next;
  const start = text.indexOf("-----", 5) + 5;
  const body = endOf(HEADERS_OF_PEM, text, start) ?? start;
  let end = body;
  for (let line = endOf(LINE_OF_PEM, text, end); line !== null; line = endOf(LINE_OF_PEM, text, end)) end = line;
  if (end === body) return 0;
  LAST_OF_PEM.lastIndex = end;
  const last = LAST_OF_PEM.exec(text);
  // A word of prose has no digits, and its capital comes first.
  return last?.[1] !== undefined && /[0-9+/=]|[a-z][A-Z]/.test(last[1]) ? end + last[0].length : end;
}

function endOf(sticky: RegExp, text: string, at: number): number | null {
  sticky.lastIndex = at;
  return sticky.test(text) ? sticky.lastIndex : null;
}

/** Of two that begin at the same place, the first one counts. */
export const SHAPES: readonly Shape[] = [
  PEM,
  AWS_PAIR,
  ...TOKENS.map(tokens),
  JWT,
  AWS_SECRET,
  ASSIGNMENT,
  LONG_ASSIGNMENT,
  FLAG,
  ...HEADERS,
  ...URLS,
];

/** More than the longest shape has. */
export const LONGEST_SHAPE_CHARS = PEM_MAX + 256;
