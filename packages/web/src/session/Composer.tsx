import { useEffect, useRef, useState } from "preact/hooks";
import type { PromptImage, Queued } from "../api/wire.ts";
import { Icon } from "../parts/Icon.tsx";
import { say } from "../state/toasts.ts";
import { keepUnsent, unsentOf } from "../state/unsent.ts";
import { visible } from "../text/visible.ts";
import type { Actions } from "./actions.ts";
import { NoPrompt } from "./NoPrompt.tsx";

const IMAGE_BYTES_MAX = 10_000_000;

interface Props {
  readonly session: string;
  readonly actions: Actions;
  /** Without the server, nothing can be sent or stopped. */
  readonly isOffline: boolean;
  readonly status: string;
  readonly queue: readonly Queued[];
  /** Text to edit, from a rewind. */
  readonly given: { readonly text: string } | null;
  readonly field: { current: HTMLTextAreaElement | null };
  /** Why no prompt can be given now; null if one can. What was typed is shown again afterwards. */
  readonly refusal: { readonly words: string; readonly canTakeOver: boolean } | null;
}

export function Composer({ session, actions, isOffline, status, queue, given, field, refusal }: Props) {
  const [text, setText] = useState(() => unsentOf(session));
  const [images, setImages] = useState<readonly PromptImage[]>([]);
  const [isSending, setSending] = useState(false);
  const picker = useRef<HTMLInputElement>(null);
  const isRunning = status === "running" && !isOffline;

  useEffect(() => keepUnsent(session, text), [session, text]);
  useEffect(() => {
    if (!given) return;
    setText(given.text);
    field.current?.focus();
  }, [given]);
  useEffect(() => {
    const area = field.current;
    if (!area) return;
    area.style.height = "auto";
    area.style.height = `${Math.min(area.scrollHeight + 2, 240)}px`;
  }, [text, refusal === null]);

  const send = async (): Promise<void> => {
    if (text.trim() === "" || isSending || isOffline) return;
    setSending(true);
    if (await actions.prompt(text, images)) {
      // What was written meanwhile is the next prompt.
      setText((now) => (now === text ? "" : now));
      setImages((all) => all.filter((one) => !images.includes(one)));
    }
    setSending(false);
    field.current?.focus();
  };
  const take = async (files: Iterable<File>): Promise<void> => {
    for (const file of files) {
      if (!file.type.startsWith("image/")) say(`${file.name} is not an image.`, undefined, true);
      else if (file.size > IMAGE_BYTES_MAX) say(`${file.name} is larger than 10 MB.`, undefined, true);
      else {
        const data = await base64Of(file);
        setImages((all) => [...all, { name: file.name, mediaType: file.type, data }]);
      }
    }
  };

  if (refusal) return <NoPrompt words={refusal.words} actions={refusal.canTakeOver ? actions : null} />;
  return (
    <form
      class="composer"
      aria-label="Prompt"
      onSubmit={(event) => {
        event.preventDefault();
        void send();
      }}
      onDragOver={(event) => event.preventDefault()}
      onDrop={(event) => {
        event.preventDefault();
        void take(event.dataTransfer?.files ?? []);
      }}
    >
      {queue.length > 0 ? (
        <ul class="queue" aria-label="Queued prompts">
          {queue.map(({ id, text: waiting }) => (
            <li key={id}>
              <Icon name="clock" />
              <span>{visible(waiting.slice(0, 200))}</span>
              <button
                type="button"
                class="icon-button"
                aria-label="Remove from the queue"
                title="Remove from the queue"
                onClick={() => void actions.withdraw(id)}
              >
                <Icon name="close" />
              </button>
            </li>
          ))}
          {isRunning || isOffline ? null : (
            <li class="queue-start">
              <button type="button" class="link-button" onClick={() => void actions.resumeQueue()}>
                Start the queue
              </button>
            </li>
          )}
        </ul>
      ) : null}
      {images.length > 0 ? (
        <ul class="attached" aria-label="Images">
          {images.map(({ name, mediaType, data }, index) => (
            <li key={index}>
              <img src={`data:${mediaType};base64,${data}`} alt={name} />
              <button
                type="button"
                class="icon-button"
                aria-label={`Remove ${name}`}
                onClick={() => setImages(images.filter((_, at) => at !== index))}
              >
                <Icon name="close" />
              </button>
            </li>
          ))}
        </ul>
      ) : null}
      <div class="composer-line">
        <textarea
          ref={(element) => {
            field.current = element;
          }}
          rows={1}
          value={text}
          placeholder={isRunning ? "Queue a prompt…" : "Write a prompt…"}
          aria-label={isRunning ? "Queue a prompt" : "Write a prompt"}
          onInput={(event) => setText(event.currentTarget.value)}
          onPaste={(event) => {
            const files = [...(event.clipboardData?.files ?? [])];
            if (files.length === 0) return;
            event.preventDefault();
            void take(files);
          }}
          onKeyDown={(event) => {
            if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
            event.preventDefault();
            void send();
          }}
        />
        <input
          ref={picker}
          class="for-readers"
          type="file"
          accept="image/*"
          multiple
          tabIndex={-1}
          aria-label="Add images"
          onChange={(event) => {
            void take(event.currentTarget.files ?? []);
            event.currentTarget.value = "";
          }}
        />
        <button
          type="button"
          class="icon-button"
          aria-label="Add an image"
          title="Add an image"
          onClick={() => picker.current?.click()}
        >
          <Icon name="image" />
        </button>
        {isRunning ? (
          <button type="button" class="button button-stop" onClick={() => void actions.stop()}>
            <Icon name="stop" />
            Stop
          </button>
        ) : null}
        <button type="submit" class="button button-main" disabled={text.trim() === "" || isSending || isOffline}>
          {isRunning ? "Queue" : "Send"}
          <Icon name="send" />
        </button>
      </div>
    </form>
  );
}

function base64Of(file: File): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(String(reader.result).replace(/^[^,]*,/, ""));
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(file);
  });
}
