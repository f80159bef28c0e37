const KEYS_MAX = 64;
const KEY = /[{,]\s*(?="\w+":)/g;

/**
 * What the end of a text says as JSON, whose beginning is lost: from the first field that can be read. The objects
 * around it have the name "", because theirs are lost. Undefined if there is nothing.
 */
export function readSuffix(text: string): unknown {
  KEY.lastIndex = 0;
  for (let tries = 0; tries < KEYS_MAX; tries++) {
    const match = KEY.exec(text);
    if (match === null) return undefined;
    const rest = text.slice(match.index + match[0].length);
    const value = parsed(openersOf(rest) + rest);
    if (value !== undefined) return value;
  }
  return undefined;
}

/** What must stand before fields of an object, so that every bracket behind them closes one. */
function openersOf(rest: string): string {
  let depth = 0;
  let openers = "";
  let isFirst = true;
  for (const [token] of rest.matchAll(/"(?:[^"\\]|\\.)*"|[{}[\]]/gs)) {
    if (token === "{" || token === "[") depth++;
    else if ((token === "}" || token === "]") && depth > 0) depth--;
    else if (token === "}" || token === "]") {
      openers = (token === "]" ? "[" : isFirst ? "{" : '{"":') + openers;
      isFirst = false;
    }
  }
  return openers;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
