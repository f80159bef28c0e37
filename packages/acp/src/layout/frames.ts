import type { Socket } from "node:net";
import type { Params, RequestId } from "../record/message.ts";
import type { OpenedSession } from "../wrap/client.ts";
import { Outlet } from "../wrap/outlet.ts";
import type { SettingRequest } from "../wrap/session-settings.ts";
import type { ShownChange } from "../wrap/shown-change.ts";

/**
 * What the shim and the supervisor say to each other: frames of a kind (1 byte), a length (4 bytes, big-endian) and
 * that many bytes. Data are the bytes of the protocol, in pieces of any size; control frames are JSON.
 */

/** Increases with every change that an older program would not understand. */
export const FRAMES_VERSION = 1;

export const DATA = 0;
export const CONTROL = 1;
export const STDERR = 2;

const HEADER_BYTES = 5;
/** A control frame says little; anything larger is not one of ours. */
const CONTROL_BYTES_MAX = 16 * 1024 * 1024;
/** What a shim keeps of opened sessions, in characters of JSON: it must fit into a control frame. */
export const OPENED_CHARS_MAX: number = CONTROL_BYTES_MAX / 8;

/** Who connects, and for what. The first control frame of a connection. */
export type Hello =
  | {
      readonly type: "hello";
      readonly version: number;
      /** For a supervisor in place of one that died: what the editor said in `initialize`, and to open its sessions. */
      readonly continues?: {
        readonly initialize: Params | null;
        readonly opened: readonly OpenedSession[];
      };
    }
  /** Its end is the end of the shim, also while nobody reads the shim's own connection. */
  | { readonly type: "life"; readonly client: number }
  /** Asks a supervisor without an editor to end now. */
  | { readonly type: "retire" };

export interface AgentFacts {
  readonly pid: number;
  readonly started: string | null;
  readonly mark: string;
}

export type Control =
  | Hello
  | { readonly type: "welcome"; readonly client: number }
  /** It has an editor already. */
  | { readonly type: "busy" }
  | { readonly type: "refused"; readonly version: number }
  /** The agent that runs now, so that the shim can end it if the supervisor dies. */
  | { readonly type: "agent"; readonly agent: AgentFacts }
  /**
   * What the editor opened a session with, so that the shim can tell the next supervisor: it is in no record, because
   * it may hold secrets. Null: the editor has closed it.
   */
  | {
      readonly type: "opened";
      readonly session: string;
      readonly params: Params | null;
      readonly chosen?: readonly SettingRequest[];
    }
  /** The data before it hold the answer to this request. */
  | { readonly type: "answered"; readonly id: RequestId }
  /** What the editor shows after the data before it. An older shim ignores it. */
  | { readonly type: "shown"; readonly change: ShownChange }
  /** The editor has closed its side. */
  | { readonly type: "leave" }
  | { readonly type: "ended"; readonly code: number | null; readonly signal: NodeJS.Signals | null }
  /** The agent could not be started. */
  | {
      readonly type: "failed";
      readonly code: string | null;
      readonly syscall: string | null;
      readonly message: string;
    };

export function headerOf(kind: number, length: number): Buffer {
  const header = Buffer.allocUnsafe(HEADER_BYTES);
  header[0] = kind;
  header.writeUInt32BE(length, 1);
  return header;
}

export function controlFrame(control: Control): Buffer {
  const body = Buffer.from(JSON.stringify(control));
  return Buffer.concat([headerOf(CONTROL, body.length), body]);
}

/** A control frame, or a piece of another one. */
export type Frame =
  | { readonly kind: number; readonly bytes: Buffer }
  | { readonly kind: typeof CONTROL; readonly control: Control };

/** Takes frames apart. Data are handed on as they arrive; a control frame when it is complete. */
export class FrameReader {
  readonly #header = Buffer.alloc(HEADER_BYTES);
  #headerBytes = 0;
  #left = 0;
  #control: Buffer[] = [];

  /** Throws if these are not frames. */
  *push(chunk: Buffer): Generator<Frame, void, undefined> {
    for (let at = 0; at < chunk.length; ) {
      if (this.#headerBytes < HEADER_BYTES) {
        const bytes = chunk.copy(this.#header, this.#headerBytes, at, at + HEADER_BYTES - this.#headerBytes);
        this.#headerBytes += bytes;
        at += bytes;
        if (this.#headerBytes < HEADER_BYTES) return;
        this.#left = this.#header.readUInt32BE(1);
        const kind = this.#header[0]!;
        if (kind > STDERR || (kind === CONTROL && this.#left > CONTROL_BYTES_MAX))
          throw new Error("the other side of the socket does not speak this protocol");
      }
      const kind = this.#header[0]!;
      const bytes = chunk.subarray(at, at + this.#left);
      at += bytes.length;
      this.#left -= bytes.length;
      if (kind === CONTROL) this.#control.push(bytes);
      else if (bytes.length > 0) yield { kind, bytes };
      if (this.#left > 0) continue;
      this.#headerBytes = 0;
      if (kind !== CONTROL) continue;
      const text = Buffer.concat(this.#control).toString("utf8");
      this.#control = [];
      yield { kind, control: JSON.parse(text) as Control };
    }
  }
}

/** Writes frames, and waits while the other side does not read. */
export class FrameOutlet {
  readonly #outlet: Outlet;

  constructor(socket: Socket) {
    this.#outlet = new Outlet(socket);
  }

  data(bytes: Buffer, kind: typeof DATA | typeof STDERR = DATA): Promise<void> {
    return this.#outlet.write(headerOf(kind, bytes.length), bytes);
  }

  /** Data, and what they mean for the shim: in one write, so that they arrive together. */
  dataWith(bytes: Buffer, control: Control): Promise<void> {
    return this.#outlet.write(headerOf(DATA, bytes.length), bytes, controlFrame(control));
  }

  control(control: Control): Promise<void> {
    return this.#outlet.write(controlFrame(control));
  }
}
