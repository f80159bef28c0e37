import { expect, test } from "vitest";
import { openaiChat } from "../../../src/dialects/openai-chat.ts";
import { checkpointOf } from "../../../src/replace/checkpoint.ts";
import { Book } from "../conversation/fold-book.ts";

const draft = { kind: "draft", id: "d1", turn: 1, n: 0, parts: [{ part: 0, text: "half" }] };

function streaming(): Book {
  const book = new Book(openaiChat);
  book.prompt({ role: "user", content: "go" });
  book.write(draft);
  expect(book.conversation.draft?.content.text).toBe("half");
  return book;
}

test.each(["completed", "left"])(
  "R10: a turn that was %s has no draft, and a late piece does not bring it back",
  (outcome) => {
    const book = streaming();
    book.write({ kind: "turn.ended", turn: 1, outcome });
    expect(book.conversation.draft).toBeNull();
    expect(checkpointOf(book.conversation)).not.toHaveProperty("draft");
    book.write({ ...draft, n: 1 });
    expect(book.conversation.draft).toBeNull();
  },
);

test.each(["failed", "stopped"])(
  "R10: a turn that was %s keeps its draft: it may be shown as an incomplete answer",
  (outcome) => {
    const book = streaming();
    book.write({ kind: "turn.ended", turn: 1, outcome });
    expect(book.conversation.draft?.content.text).toBe("half");
  },
);
