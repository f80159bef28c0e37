import { expect, test } from "vitest";
import { readEvents, type ServerEvent } from "../../../src/client/event-source.ts";

const TEXT = [
  "retry: 0\n\n",
  'id: 1-ab\nevent: record\ndata: {"a":"é🌊"}\n\n',
  ":\n\n",
  "id: 2-cd~x.4\nevent: text\ndata: one\ndata: two\n\n",
  "event: state\ndata: no id\n\n",
  "id:\nevent: start-over\ndata:x\n\n",
  "id: 3-ef\r\nevent: record\r\ndata: last\r\n\r\n",
  "id: 4-00\nevent: record\ndata: cut off",
].join("");

async function read(pieces: readonly Uint8Array[]): Promise<ServerEvent[]> {
  async function* body(): AsyncGenerator<Uint8Array> {
    yield* pieces;
  }
  return await Array.fromAsync(readEvents(body(), "0-00", () => {}));
}

const EVENTS = [
  { name: "record", data: '{"a":"é🌊"}', lastId: "1-ab" },
  { name: "text", data: "one\ntwo", lastId: "2-cd~x.4" },
  { name: "state", data: "no id", lastId: "2-cd~x.4" },
  { name: "start-over", data: "x", lastId: "" },
  { name: "record", data: "last", lastId: "3-ef" },
];

test("events are the same wherever the bytes are cut into pieces, and half an event is none", async () => {
  const bytes = Buffer.from(TEXT);
  for (let at = 0; at <= bytes.length; at++)
    expect(await read([bytes.subarray(0, at), bytes.subarray(at)])).toEqual(EVENTS);
  expect(await read(Array.from(bytes, (byte) => Uint8Array.of(byte)))).toEqual(EVENTS);
});

test("a long line in many pieces is put together once", async () => {
  const line = "x".repeat(1000);
  const pieces = Array.from({ length: 2000 }, () => Buffer.from(line));
  const [event] = await read([Buffer.from("data: "), ...pieces, Buffer.from("\n\n")]);
  expect(event?.data).toHaveLength(2_000_000);
});
