/** One server-sent event. */
export interface ServerEvent {
  readonly name: string;
  readonly data: string;
  /** The last id so far; a client that comes back sends it. */
  readonly lastId: string;
}

/** Reads server-sent events from a body, wherever it is cut into pieces. An event that is not complete is dropped. */
export async function* readEvents(
  body: AsyncIterable<Uint8Array>,
  lastId: string,
  onBytes: () => void,
): AsyncGenerator<ServerEvent, void, undefined> {
  const decoder = new TextDecoder();
  const pieces: string[] = [];
  let [id, pendingId, name] = [lastId, lastId, ""];
  let data: string[] = [];
  for await (const bytes of body) {
    onBytes();
    const text = decoder.decode(bytes, { stream: true });
    // A long line arrives in many pieces: it is put together once, at its end.
    if (!text.includes("\n")) {
      pieces.push(text);
      continue;
    }
    const lines = `${pieces.splice(0).join("")}${text}`.split("\n");
    pieces.push(lines.pop()!);
    for (const line of lines) {
      if (line === "" || line === "\r") {
        id = pendingId;
        if (data.length > 0) yield { name: name || "message", data: data.join("\n"), lastId: id };
        [name, data] = ["", []];
        continue;
      }
      const colon = line.indexOf(":");
      const field = colon < 0 ? line : line.slice(0, colon);
      const value =
        colon < 0
          ? ""
          : line
              .slice(colon + 1)
              .replace(/^ /, "")
              .replace(/\r$/, "");
      if (field === "data") data.push(value);
      else if (field === "event") name = value;
      else if (field === "id") pendingId = value;
    }
  }
}
