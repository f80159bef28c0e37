/** An answer that is not a success: what the server says about it (RFC 9457). */
export class Refusal extends Error {
  readonly status: number;
  /** One of docs/ERRORS.md; `UNREACHABLE` if the server did not answer. */
  readonly code: string;
  readonly facts: Readonly<Record<string, unknown>>;

  constructor(status: number, code: string, detail: string, facts: Readonly<Record<string, unknown>> = {}) {
    super(detail);
    this.status = status;
    this.code = code;
    this.facts = facts;
  }
}

type Query = Readonly<Record<string, string | number | undefined>>;

/** Addresses are relative, so that the page works below any path of a proxy. */
export function urlOf(path: string, query: Query = {}): string {
  const given = Object.entries(query).filter((pair): pair is [string, string | number] => pair[1] !== undefined);
  const search = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
  return `.${path}${search === "" ? "" : `?${search}`}`;
}

export async function get<T>(path: string, query?: Query, signal?: AbortSignal): Promise<T> {
  return (await send("GET", urlOf(path, query), undefined, signal)) as T;
}

export async function post<T = void>(path: string, body: object = {}): Promise<T> {
  return (await send("POST", urlOf(path), body)) as T;
}

export async function patch<T = void>(path: string, body: object): Promise<T> {
  return (await send("PATCH", urlOf(path), body)) as T;
}

export async function remove(path: string): Promise<void> {
  await send("DELETE", urlOf(path));
}

async function send(method: string, url: string, body?: object, signal?: AbortSignal): Promise<unknown> {
  const response = await fetch(url, {
    method,
    credentials: "same-origin",
    headers: body === undefined ? {} : { "content-type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    ...(signal ? { signal } : {}),
  }).catch(unreachable);
  // The connection can also end in the middle of an answer.
  if (response.ok) return response.status === 204 ? undefined : response.json().catch(unreachable);
  throw await refusalOf(response);
}

function unreachable(error: unknown): never {
  if (error instanceof DOMException && error.name === "AbortError") throw error;
  throw new Refusal(0, "UNREACHABLE", "The server does not answer. Check that `holdfast serve` is running.");
}

async function refusalOf(response: Response): Promise<Refusal> {
  const text = await response.text().catch(unreachable);
  try {
    const { code, detail, facts } = JSON.parse(text) as { code?: string; detail?: string; facts?: object };
    if (typeof code === "string")
      return new Refusal(response.status, code, detail ?? code, (facts ?? {}) as Record<string, unknown>);
  } catch {
    // A proxy's page, not the server's answer.
  }
  return new Refusal(response.status, "UNEXPECTED", `The server answered with status ${response.status}.`);
}
