// What every agent under test shares: the payment service and the model that it can reach, and its one prompt.
export const PROMPT = "Pay ACME 42 for invoice 7.";

let address = globalThis.process?.env?.PAYMENT_URL;

/** For runtimes without an environment. */
export function reachAt(url) {
  address = url;
}

async function post(path, body) {
  const response = await fetch(address + path, { method: "POST", body: JSON.stringify(body) });
  if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
  return response.json();
}

/** The tool. It can be killed before it reaches the service, and before it returns. */
export async function charge({ amount, to }, key) {
  await post("/before", {});
  return post("/charges", { amount, to, key });
}

/** What the service knows of a key: the charge, or null. */
export async function ask(key) {
  return (await fetch(`${address}/charges/${encodeURIComponent(key)}`)).json();
}

/** The model's answer: a call, or text. */
export function askModel(messages) {
  return post("/model", { messages });
}

export function ended(how) {
  return post("/ended", how);
}
