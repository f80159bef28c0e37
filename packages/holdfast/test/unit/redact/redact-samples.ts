/** Made up, and put together here: no file of this repository holds anything that a scanner would take for a key. */
const ALPHABET = "k3Vq9ZtLw7RbX2nHs8JdY4mPc6GfT5aQeW1uBiNoM0CrSxKhDvEyFgUjzAlOpI";

/** Letters and digits that look random. */
export function noise(chars: number, from = 0): string {
  let out = "";
  for (let i = 0; i < chars; i++) out += ALPHABET[(from * 17 + i * 23 + Math.floor(i / 7) * 5) % ALPHABET.length];
  return out;
}
const upper = (chars: number): string =>
  noise(chars * 2)
    .toUpperCase()
    .slice(0, chars);
const lines = (count: number): string => Array.from({ length: count }, (_, i) => noise(64, i)).join("\n");

export const PEM = `${["-----BEGIN", "RSA PRIVATE KEY-----"].join(" ")}\n${lines(20)}\n${noise(20)}==\n${["-----END", "RSA PRIVATE KEY-----"].join(" ")}`;
const BEGIN = PEM.split("\n")[0]!;

export interface Sample {
  readonly name: string;
  readonly text: string;
  /** What must not be left of it. */
  readonly secret: string;
  readonly redacted: string;
}

function token(kind: string, prefix: string, body: string): Sample {
  return { name: `${kind} ${prefix}`, text: prefix + body, secret: body, redacted: `[redacted:${kind}]` };
}
function behind(kind: string, before: string, secret: string, after = ""): Sample {
  return { name: before, text: before + secret + after, secret, redacted: `${before}[redacted:${kind}]${after}` };
}

export const SAMPLES: readonly Sample[] = [
  token("aws-key-id", "AKIA", upper(16)),
  token("aws-key-id", "ASIA", upper(16)),
  token("github", "ghp_", noise(36)),
  token("github", "gho_", noise(36)),
  token("github", "ghs_", noise(36)),
  token("github", "ghr_", noise(76)),
  token("github", "github_pat_", `${noise(22)}_${noise(59)}`),
  token("gitlab", "glpat-", noise(20)),
  token("gitlab", "glpat-", `${noise(27)}.01.${noise(9)}`),
  token("gitlab", "glrt-", noise(20)),
  token("slack", "xoxb-", `123456789012-1234567890123-${noise(24)}`),
  token("slack", "xoxp-", `123456789012-123456789012-123456789012-${noise(32)}`),
  token("slack", "xapp-", `1-A0123456789-1234567890123-${noise(64)}`),
  token("stripe", "sk_live_", noise(24)),
  token("stripe", "rk_test_", noise(99)),
  token("openai", "sk-proj-", `${noise(74)}_${noise(8)}-${noise(72)}`),
  token("api-key", "sk-", noise(48)),
  token("api-key", "sk-or-v1-", noise(64).toLowerCase()),
  token("anthropic", "sk-ant-api03-", `${noise(93)}AA`),
  token("anthropic", "sk-ant-oat01-", `${noise(60)}-${noise(32)}AA`),
  token("google", "AIza", noise(35)),
  token("google", "ya29.", `a0${noise(120)}_${noise(30)}`),
  token("google", "GOCSPX-", noise(28)),
  token("npm", "npm_", noise(36)),
  token("pypi", "pypi-AgEIcHlwaS5vcmc", noise(120)),
  token("huggingface", "hf_", noise(34)),
  token("jwt", "eyJ", `${noise(30)}.eyJ${noise(100)}.${noise(43)}`),
  { name: "a PEM block", text: PEM, secret: noise(64, 3), redacted: "[redacted:private-key]" },
  {
    name: "a PEM block in JSON",
    text: JSON.stringify({ k: PEM }),
    secret: noise(64, 3),
    redacted: '{"k":"[redacted:private-key]"}',
  },
  {
    name: "a PEM block that is cut off",
    text: `${BEGIN}\n${lines(3)}\n${noise(10)}`,
    secret: noise(64, 1),
    redacted: "[redacted:private-key]",
  },
  {
    name: "a PEM block without its end, and prose behind it",
    text: `${BEGIN}\n${lines(3)}\n... and so on, for many lines; that is how it looks.`,
    secret: noise(64, 1),
    redacted: "[redacted:private-key]\n... and so on, for many lines; that is how it looks.",
  },
  {
    name: "a PEM block with the numbers of its lines",
    text: PEM.split("\n")
      .map((line, at) => `${at + 1}→${line}`)
      .join("\n"),
    secret: noise(64, 3),
    redacted: "1→[redacted:private-key]",
  },
  behind("aws-secret-key", "aws_secret_access_key = ", noise(40)),
  behind("aws-secret-key", '"SecretAccessKey": "', `/${noise(38)}+`, '",'),
  {
    name: "an AWS key behind its id",
    text: `AKIA${upper(16)},${noise(40)}\n`,
    secret: noise(40),
    redacted: "[redacted:aws-secret-key]\n",
  },
  behind("authorization", "Authorization: Bearer ", noise(40)),
  behind("authorization", "authorization: basic ", "dXNlcjpwYXNzd29yZA=="),
  behind("authorization", '"Authorization": "Bearer ', noise(40), '"'),
  behind("authorization", "curl -H 'Authorization: token ", noise(40), "' https://example.com"),
  behind("authorization", "Authorization: Bot ", `${noise(24)}.${noise(6)}.${noise(38)}`),
  behind("authorization", "Proxy-Authorization: Basic ", "dXNlcjpwYXNzd29yZA=="),
  behind("authorization", "Authorization: Negotiate ", `YII${noise(200)}==`),
  behind("authorization", "Authorization: NTLM ", noise(72)),
  behind("authorization", "Authorization: DPoP ", noise(60)),
  behind("authorization", "authorization: ApiKey ", noise(40)),
  behind("authorization", "Authorization: SSWS ", noise(42)),
  behind("authorization", "Authorization: ", noise(40)),
  behind("authorization", "Bearer ", noise(40)),
  behind("url-password", "postgres://app:", "s3cret!", "@db.example.com:5432/app"),
  behind("url-password", "redis://:", "p@ss", "@localhost"),
  behind("url-password", "https://", `ghp_${noise(36)}:x-oauth-basic`, "@github.com/a/b.git"),
  behind("secret", "password=", "hunter2hunter2"),
  behind("secret", 'api_key: "', noise(24), '"'),
  behind("secret", "DB_PASSWORD='", "Tr0ub4dor&3".replace("&", "+"), "'"),
  behind("secret", '{\\"clientSecret\\": \\"', noise(24), '\\"}'),
  behind("secret", "mysql --password ", "hunter2hunter2", " -u root"),
  behind("secret", "https://example.com/?access_token=", noise(30), "&x=1"),
  behind("secret", "aws_session_token = ", `${noise(600)}==`),
];

/** What code and prose are full of, and no secret. */
export const HARMLESS: readonly string[] = [
  "const token = await getToken(user.id);",
  "const token = tokens2024[0];",
  "password: string; apiKey?: string; secret: Uint8Array;",
  "password = process.env.DB_PASSWORD2",
  "API_KEY=$OPENAI_API_KEY2 TOKEN=$" + "{TOKEN_V2}",
  "api_key: YOUR_API_KEY_1",
  "private_key: /etc/ssl/private/key1.pem",
  "token: abc",
  "max_tokens: 4096000000, input_tokens=123456789",
  "the password is required, the token: optional",
  "sk-fading-circle-container sk-cube-grid-item-9-of-nine",
  "hf_transformers_model_loading_test2_util",
  "npm_config_registry=https://registry.npmjs.org/",
  "https://example.com:8080/a@b http://localhost:3000 git@github.com:a/b.git",
  "postgres://user:$PASSWORD@localhost postgres://user:<password>@localhost",
  "Authorization: Basic authentication is described below. Bearer authentication, too.",
  "Authorization: Negotiate Kerberos tickets, see section-4.2-of-the-documentation",
  "authorization: see the documentation",
  'if (text.startsWith("-----BEGIN PRIVATE KEY-----")) return parse(text);',
  "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
  "commit 3f786850e387550fdab836ed7e6dc881de23001b",
  "id 01890a5d-ac96-774b-bcce-b302099a8057, toolu_01A09q90qw90lq917835lq9, call_abc123abc123abc123abc123",
  "-----",
  "",
];
