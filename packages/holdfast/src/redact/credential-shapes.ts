import { all, LETTERS, TOKEN_MAX, tokenShapes, WORD, withDigit } from "./credential-tokens.ts";
import {
  beginning,
  either,
  nothing,
  type Piece,
  repeat,
  run,
  type Shape,
  sequence,
  text,
  unless,
  upTo,
  word,
} from "./pattern.ts";

const PEM_MAX = 16_384;

const JWT: Shape = {
  kind: "jwt",
  prefix: beginning("eyJ", WORD),
  secret: sequence(run(WORD, 10, 2048), text("."), run(WORD, 10, 8192), text("."), run(`${WORD}.`, 10, TOKEN_MAX)),
};

/** As printed by `aws iam create-access-key` and in the console's file: the id, followed by the key. */
const AWS_PAIR: Shape = {
  kind: "aws-secret-key",
  prefix: either(beginning("AKIA", LETTERS), beginning("ASIA", LETTERS)),
  secret: sequence(run("A-Z0-9", 16, 16), run("\\s,:|\"'", 1, 8), run("A-Za-z0-9/+", 40, 40)),
  behind: unless("A-Za-z0-9/+="),
};

const QUOTES = run("\\\\\"'`", 0, 2);
const SPACES = run(" \\t", 0, 8);
const BLANKS = run(" \\t", 1, 4);
const GAP = run("\\s", 1, 4);
const QUOTE = run("\"'", 0, 1);
const maybe = (...pieces: Piece[]): Piece => either(sequence(...pieces), nothing);
const ASSIGNED = sequence(QUOTES, SPACES, run(":=", 1, 2), run(">", 0, 1), SPACES, QUOTES);

const AWS_SECRET: Shape = {
  kind: "aws-secret-key",
  keep: sequence(
    ...[word("secret"), run("_\\- ", 0, 1), word("access"), run("_\\- ", 0, 1), word("key")],
    // As `aws configure` asks for it.
    maybe(text(" [None]")),
    ASSIGNED,
  ),
  secret: run("A-Za-z0-9/+", 40, 40),
  behind: unless("A-Za-z0-9/+="),
};

/** How such names end: `DB_PASSWORD`, `clientSecret`, `x-api-key`. */
const NAMES = either(
  ...words("password passwd passphrase passcode pwd pass secret token credential credentials"),
  ...words("client-key-data secret_key_base code_verifier psk _pat _pw"),
  sequence(
    either(
      ...words("api access secret private account encryption signing auth app application"),
      ...words("client master shared session storage role admin webhook deploy consumer"),
      ...words("subscription functions license integration hmac jwt ssh service write validation decryption"),
    ),
    run("_\\-", 0, 1),
    word("key"),
  ),
);

function words(separatedBySpaces: string): Piece[] {
  return separatedBySpaces.split(" ").map(word);
}

const OUTSIDE = "\\s\"'`,;<>()\\[\\]{}&|\\\\";
const VALUE = `^${OUTSIDE}`;
const VALUE_MAX = 128;
/** Longer values use a smaller alphabet. */
const OPAQUE = "A-Za-z0-9+/_.~\\-";

/** Before a bracket it is code (a call or an index), or it precedes a marker. */
const VALUE_END = upTo("\\s\"'`,;<>){}&|\\\\\\]");

/** A value assigned to such a name is mostly not a secret but code, a type or a placeholder. */
function scoreAssigned(value: string): number {
  if (!/[A-Za-z]/.test(value) || !/[0-9@#$%^*~+]/.test(value)) return 0;
  if (/^(?:[$%*/.~]|-----|u?int\d|float\d|bigu?int|arn:|sha(?:256|384|512)[-:])|:\/\//i.test(value)) return 0;
  if (isPlaceholder(value) || isPath(value)) return 0;
  if (value.length >= 40) return all(value);
  const isRandom = /[A-Za-z0-9]{20}/.test(value) && (value.match(/[0-9]/g)?.length ?? 0) >= 3;
  const isMember = !isRandom && /^[A-Za-z_$][\w$]*(?:\??\.[A-Za-z_$][\w$]*)+$/.test(value);
  const isConstant = /^[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+$/.test(value);
  const isType = /^[A-Z][a-z]{1,8}[0-9]?$/.test(value);
  return isMember || isConstant || isType ? 0 : all(value);
}

/** What examples and tests use in place of a secret. */
function isPlaceholder(value: string): boolean {
  return (
    value.length < 32 &&
    /^(?:your|my|the)[-_]|^(?:your|my|the|an?)?(?:example|dummy|fake|mock|test|sample|placeholder|change|insert|replace|enter|some|x{3,}|\d*x{4,}|foo|bar|todo)/i.test(
      value,
    )
  );
}

/** A path of a file, or of a secret in its store; base64 contains capitals. */
function isPath(value: string): boolean {
  return (
    /^[a-z0-9._@-]+(?:[/:][a-z0-9._@-]+)+$/.test(value) ||
    /^[A-Za-z]:[/\\]|\.(?:pem|key|json|ya?ml|txt|[jt]sx?|py|go|rs)$/.test(value)
  );
}

const VALUE_MIN = 6;

/** The name of a secret in its store is none: `arn:aws:secretsmanager:…:123456789012:secret:db-a1B2c3`. */
const NOT_IN_ARN: Piece = { ...nothing, full: "(?<![0-9]:secret:)" };

/** What stands where a password does. */
const PASSED: Shape = {
  kind: "secret",
  secret: run(VALUE, VALUE_MIN, VALUE_MAX),
  behind: VALUE_END,
  judge: scoreAssigned,
};
const ASSIGNMENT: Shape = { ...PASSED, name: NAMES, keep: sequence(ASSIGNED, NOT_IN_ARN) };
const LONG_ASSIGNMENT: Shape = {
  ...ASSIGNMENT,
  secret: sequence(run(OPAQUE, VALUE_MAX - 2, TOKEN_MAX), run("=", 0, 2)),
};
const FLAG: Shape = { ...PASSED, keep: sequence(text("--"), NAMES, BLANKS, QUOTES) };
const QUOTED = run("\"'`", 1, 1);
/** A session's id may be a secret or not; those that are UUIDs stand in every log. */
const SESSION: Shape = {
  ...PASSED,
  keep: sequence(either(...["sessid", "sessionid", "session_id", "connect.sid"].map(word)), ASSIGNED),
  judge: (value) => (/^[0-9a-f]{8}-[0-9a-f-]{27}$/i.test(value) ? 0 : scoreAssigned(value)),
};
/**
 * `setPassword("…")`, `<password>…`, `WITH PASSWORD '…'`, `IDENTIFIED BY '…'`, `define('DB_PASSWORD', '…')`,
 * `<add key="ApiKey" value="…">`.
 */
const GIVEN: readonly Shape[] = [
  { ...ASSIGNMENT, keep: sequence(QUOTED, SPACES, text(","), SPACES, QUOTED), judge: strict },
  { ...ASSIGNMENT, keep: sequence(QUOTED, BLANKS, word("value="), QUOTED), judge: strict },
  { ...ASSIGNMENT, keep: sequence(text("("), QUOTED), judge: strict },
  { ...ASSIGNMENT, keep: text(">"), judge: strict },
  { ...ASSIGNMENT, keep: sequence(BLANKS, QUOTED), judge: strict },
  { ...PASSED, keep: sequence(word("identified by"), BLANKS, QUOTED), judge: strict },
];
/** Assigned, passed or given. */
const ASSIGNMENTS: readonly Shape[] = [ASSIGNMENT, LONG_ASSIGNMENT, SESSION, FLAG, ...GIVEN];

function strict(value: string): number {
  return /[0-9]/.test(value) && /[A-Z]|[^A-Za-z0-9_.-]|[A-Za-z0-9]{16}/.test(value) ? scoreAssigned(value) : 0;
}

const NAME = run("^\\s:\"'`<>()\\[\\]{}|\\\\", 1, 64);
/** Files and options where the position identifies a password. */
const PLACES: readonly Shape[] = [
  // .netrc
  {
    kind: "secret",
    keep: sequence(word("login"), GAP, run("^\\s\"'`<>()\\[\\]{}|\\\\", 1, 64), GAP, word("password"), GAP),
    secret: run("^\\s\"'`<>\\[\\]\\\\", 4, VALUE_MAX),
    judge: scoreAssigned,
  },
  // .pgpass
  {
    kind: "secret",
    keep: sequence(either(text(":5432:"), text(":5433:"), text(":*:")), NAME, text(":"), NAME, text(":")),
    secret: run("^\\s:\"'`<>\\[\\]\\\\", 4, VALUE_MAX),
    judge: (value) => (/[A-Za-z]/.test(value) ? all(value) : 0),
  },
  // curl
  {
    ...PASSED,
    keep: sequence(either(...["-u ", "--user ", "--user=", "--proxy-user "].map(text)), QUOTE, NAME, text(":")),
    secret: run(VALUE, 4, VALUE_MAX),
  },
  // -u root -pSecret, docker login -u me -p secret
  ...[
    sequence(text("-u"), run(" ", 0, 1), NAME, run(" ", 1, 2), text("-p"), run(" ", 0, 1), QUOTE),
    sequence(text("sshpass -p"), run(" ", 0, 1), QUOTE),
    sequence(text("redis-cli"), maybe(text(" -h "), NAME), maybe(text(" -p "), run("0-9", 1, 5)), text(" -a "), QUOTE),
    sequence(either(text("http -a "), text("https -a ")), QUOTE, NAME, text(":")),
    sequence(word("convertto-securestring "), maybe(word("-string ")), QUOTED),
    sequence(word("/user:"), run("^\\s\"'`<>()\\[\\]{}|", 1, 64), run(" ", 1, 2), QUOTE),
    sequence(word("bindpw"), BLANKS),
    sequence(word("auth"), text("=("), QUOTED, NAME, QUOTED, text(","), SPACES, QUOTED),
  ].map((keep): Shape => ({ ...PASSED, keep, judge: strict })),
  {
    kind: "secret",
    keep: sequence(text("echo "), QUOTE, NAME, text(":")),
    secret: run(VALUE, VALUE_MIN, VALUE_MAX),
    behind: sequence(QUOTE, SPACES, text("|"), SPACES, maybe(text("sudo ")), text("chpasswd")),
  },
  // WordPress: random characters of all kinds
  {
    kind: "secret",
    keep: sequence(either(word("_key"), word("_salt")), QUOTED, text(","), run(" \\t", 0, 16), QUOTED),
    secret: run("^\\r\\n\"'`\\[\\]\\\\", 24, VALUE_MAX),
    judge: (value) => (/[0-9]/.test(value) && /[^A-Za-z0-9\s_.-]/.test(value) ? all(value) : 0),
  },
  // Signed URLs
  {
    kind: "signature",
    keep: either(beginning("sig=", WORD), word("x-amz-signature="), word("x-goog-signature=")),
    secret: run("A-Za-z0-9%_+/=\\-", 32, TOKEN_MAX),
  },
  // docker, npm and yarn configuration
  {
    kind: "secret",
    keep: sequence(either(word("auth"), word("authident")), ASSIGNED),
    secret: sequence(run("A-Za-z0-9+/", 12, 512), run("=", 0, 2)),
    judge: scoreEncoded,
  },
  // SMTP
  {
    kind: "secret",
    keep: word("auth plain "),
    secret: sequence(run("A-Za-z0-9+/", 12, 512), run("=", 0, 2)),
    judge: (value) => (Buffer.from(value, "base64").includes(0) ? all(value) : 0),
  },
  // The private members of a JSON Web Key
  {
    kind: "private-key",
    keep: sequence(
      either(...["d", "p", "q", "dp", "dq", "qi"].map((member) => text(`"${member}"`))),
      ...[SPACES, text(":"), SPACES, text('"')],
    ),
    secret: run(WORD, 43, TOKEN_MAX),
    behind: { ...nothing, full: '(?=")', open: "$" },
    judge: withDigit,
  },
  {
    kind: "putty-key",
    keep: sequence(text("Private-Lines:"), SPACES, run("0-9", 1, 3), run("\\r\\n\\\\nr", 1, 4)),
    secret: repeat("[A-Za-z0-9+/=\\s\\\\]", 16, PEM_MAX),
    judge: (value) => value.replace(/(?:\s|\\[nr])*(?:Private)?$/, "").length,
  },
  {
    kind: "discord",
    prefix: either(...["MT", "Mj", "Mz", "ND", "NT", "Nj", "Nz", "OD", "OT"].map((start) => beginning(start, WORD))),
    secret: sequence(run(LETTERS, 20, 26), text("."), run(WORD, 6, 7), text("."), run(WORD, 27, 64)),
    // The number of the bot comes first.
    judge: (value) =>
      /^[0-9]{17,20}$/.test(decoded(value.split(".", 1)[0]!)) || isMixed(value.split(".")[2]!) ? all(value) : 0,
  },
  {
    kind: "cookie",
    keep: sequence(word("cookie"), either(ASSIGNED, sequence(BLANKS, QUOTES))),
    secret: run("^\\r\\n\"'`<>\\[\\]\\\\{}", 16, TOKEN_MAX),
    judge: cookies,
  },
  // A Telegram bot: its number and its key
  {
    kind: "telegram",
    prefix: sequence(text(":AA"), { ...nothing, full: "(?<=[0-9]{8}:AA)" }),
    secret: run(WORD, 33, 33),
    behind: unless(WORD),
  },
  // The part after its id, in the middle of a word
  {
    kind: "terraform",
    prefix: sequence(text("atlasv1."), { ...nothing, full: String.raw`(?<=[A-Za-z0-9]\.atlasv1\.)` }),
    secret: run(WORD, 50, 256),
  },
  {
    kind: "airtable",
    prefix: beginning("pat", LETTERS),
    secret: sequence(run(LETTERS, 14, 14), text("."), run("0-9a-f", 64, 64)),
  },
];

/** `user:password` in base64, or something random. */
function scoreEncoded(value: string): number {
  const isPair = /^[ -~]+:[ -~]+$/.test(decoded(value));
  return isPair || (value.length >= 20 && isMixed(value)) ? all(value) : 0;
}

/** Capitals, small letters and several digits: no word has them. */
function isMixed(value: string): boolean {
  return /[A-Z]/.test(value) && /[a-z]/.test(value) && (value.match(/[0-9]/g)?.length ?? 0) >= 3;
}

function decoded(value: string): string {
  return Buffer.from(value, "base64").toString("latin1");
}

/** At least one of them is more than a setting. */
function cookies(value: string): number {
  return /(?:^|; ?)[\w.%-]{1,64}=(?=[^;]{0,64}[0-9])(?=[^;]{0,64}[A-Za-z])[^;\s]{16}/.test(value.slice(0, 1024))
    ? value.trimEnd().length
    : 0;
}

const CREDENTIAL = "A-Za-z0-9._~+/\\-";
const CREDENTIALS_MAX = sequence(run(CREDENTIAL, 8, TOKEN_MAX), run("=", 0, 2));
const AUTHORIZATION = sequence(word("authorization"), ASSIGNED);
/** Schemes whose credentials may be short. */
export const SCHEMES: readonly string[] = ["bearer", "basic", "token", "bot"];
const SCHEME = sequence(either(...SCHEMES.map(word)), BLANKS);
/** Negotiate, NTLM, DPoP, ApiKey, SSWS and any others. */
const ANY_SCHEME = sequence(run("A-Za-z0-9\\-", 2, 24), BLANKS);

/** "Authorization: Basic authentication" is prose. */
const mixed = (secret: string): number => (/[0-9A-Z]/.test(secret) ? all(secret) : 0);
const long = (secret: string): number => (secret.length >= 20 ? withDigit(secret) : 0);

const HEADERS: readonly Shape[] = [
  { kind: "authorization", keep: sequence(AUTHORIZATION, SCHEME), secret: CREDENTIALS_MAX, judge: mixed },
  { kind: "authorization", keep: sequence(AUTHORIZATION, ANY_SCHEME), secret: CREDENTIALS_MAX, judge: long },
  { kind: "authorization", keep: AUTHORIZATION, secret: CREDENTIALS_MAX, judge: long },
  { kind: "authorization", keep: sequence(word("bearer"), BLANKS), secret: CREDENTIALS_MAX, judge: long },
];

const USER = "^\\s:/@=?#,\"'`<>()\\[\\]{}|\\\\";
const PASSWORD = run("^\\s/?#,\"'`<>()\\[\\]{}|\\\\", 1, 256);
const BEFORE_HOST: Piece = { ...nothing, full: "(?=@)", open: "$" };

/** A long user name is itself a token. */
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
    judge: (secret) => (/^[$%*]/.test(secret) ? 0 : all(secret)),
  },
];

/**
 * What can occur between the lines of a key: line breaks and their escapes, headers of old formats, quotes, line
 * numbers, diff and quotation marks.
 */
const PEM_BODY = `(?:[A-Za-z0-9+/=\\s\\\\:,.()"'@<>|→]|-(?!----))`;
const pemLine = (edge: string): Piece =>
  sequence(text(`-----${edge} `), run("A-Z0-9 ", 0, 40), text("PRIVATE KEY"), maybe(text(" BLOCK")), text("-----"));

const PEM: Shape = {
  kind: "private-key",
  prefix: pemLine("BEGIN"),
  secret: sequence(repeat(PEM_BODY, 0, PEM_MAX), maybe(pemLine("END"))),
  judge: keyChars,
};

const BETWEEN = String.raw`(?:\\[nrt]|[\s"'+,>|→]){0,24}`;
const NUMBERED = String.raw`(?:\d{1,6}[\s→|:]{1,8})?`;
const HEADERS_OF_PEM = new RegExp(String.raw`(?:${BETWEEN}${NUMBERED}[A-Za-z][A-Za-z\-]{0,30}: [^\n\\]{0,200})*`, "y");
const LINE_OF_PEM = new RegExp(String.raw`${BETWEEN}${NUMBERED}[A-Za-z0-9+/=]{32,}(?![\w[\-])`, "y");
const LAST_OF_PEM = new RegExp(String.raw`${BETWEEN}${NUMBERED}([A-Za-z0-9+/=]{1,31})(?![\w[\-])`, "y");

/**
 * Without its end, the key was cut off: what does not belong to it stays. Or there is no key, only a mention of one.
 */
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
  // A word of prose has no digits, and a capital only at its start.
  return last?.[1] !== undefined && /[0-9+/=]|[a-z][A-Z]/.test(last[1]) ? end + last[0].length : end;
}

function endOf(sticky: RegExp, text: string, at: number): number | null {
  sticky.lastIndex = at;
  return sticky.test(text) ? sticky.lastIndex : null;
}

/** If two start at the same place, the first one counts. */
export function allShapes(): readonly Shape[] {
  return [PEM, AWS_PAIR, ...tokenShapes(), JWT, AWS_SECRET, ...ASSIGNMENTS, ...PLACES, ...HEADERS, ...URLS];
}

/** Longer than the longest shape. */
export const LONGEST_SHAPE_CHARS = PEM_MAX + 256;
