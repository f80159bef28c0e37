import { expect, test } from "vitest";
import { mutableCopy } from "../../../src/ai-sdk/mutable-copy.ts";

test("what a message holds is copied: changing the copy changes nothing else", () => {
  class Other {}
  const other = new Other();
  const message = Object.freeze({
    text: "hello",
    list: Object.freeze([1, { deep: true }]),
    url: new URL("https://example.com/a.png"),
    buffer: Buffer.from([1, 2, 3]),
    bytes: new Uint8Array([1, 2, 3]),
    array: new Uint8Array([1, 2, 3]).buffer,
    bare: Object.assign(Object.create(null) as object, { x: 1 }),
    nothing: null,
    other,
  });
  const copy = mutableCopy(message);
  expect(copy).toEqual(message);
  expect(Buffer.isBuffer(copy.buffer)).toBe(true);
  expect(copy.other, "an instance of a class is not taken apart").toBe(other);

  (copy as { text: string }).text = "changed";
  (copy.list[1] as { deep: boolean }).deep = false;
  copy.url.pathname = "/b.png";
  copy.buffer[0] = 9;
  copy.bytes[0] = 9;
  new Uint8Array(copy.array)[0] = 9;
  (copy.bare as { x: number }).x = 9;
  expect(message).toMatchObject({ text: "hello", list: [1, { deep: true }], bare: { x: 1 } });
  expect(message.url.href).toBe("https://example.com/a.png");
  expect([message.buffer[0], message.bytes[0], new Uint8Array(message.array)[0]]).toEqual([1, 1, 1]);
});
