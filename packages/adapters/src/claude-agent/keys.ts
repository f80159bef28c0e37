import { idFrom } from "holdfast";
import type { NewRecord } from "holdfast/store";
import type { HookInput, SessionKey } from "./surface.ts";

/** The name under which the sessions are listed, and their lease is held. */
export const APP = "claude-agent-sdk";

/** The labels of a session. Without `session`, no entry of its transcript has been mirrored yet. */
export const LABELS = { project: "claude.project", session: "claude.session", subpath: "claude.subpath" } as const;

/** A session's labels may be this long together. */
const KEY_CHARS_MAX = 4096;

export function nameOf({ projectKey, sessionId, subpath }: SessionKey): string {
  return JSON.stringify(subpath === undefined ? [projectKey, sessionId] : [projectKey, sessionId, subpath]);
}

/** The Holdfast session of a transcript. */
export function sessionOf(key: SessionKey): string {
  return idFrom(`claude-agent-sdk transcript ${nameOf(key)}`);
}

/** The first record of a transcript's session. */
export function attributesOf(key: SessionKey): NewRecord {
  const { length } = nameOf(key);
  if (length > KEY_CHARS_MAX) {
    throw new RangeError(
      `The key of a transcript has at most ${KEY_CHARS_MAX} characters; this one has ${length}. Nothing was stored.`,
    );
  }
  const parent = key.subpath === undefined ? {} : { parent: { session: sessionOf(mainOf(key)) } };
  return { kind: "session", dialect: "anthropic", app: APP, labels: firstLabelsOf(key), ...parent };
}

function firstLabelsOf({ projectKey, subpath }: SessionKey): Record<string, string> {
  const labels = { [LABELS.project]: projectKey };
  return subpath === undefined ? labels : { ...labels, [LABELS.subpath]: subpath };
}

/** Written with the first entry. */
export function labelsOf(key: SessionKey): Record<string, string> {
  return { ...firstLabelsOf(key), [LABELS.session]: key.sessionId };
}

export function mainOf({ projectKey, sessionId }: SessionKey): SessionKey {
  return { projectKey, sessionId };
}

/**
 * The transcript that a hook's event belongs to. Claude Code keeps transcripts in `projects/<project key>/<session
 * id>.jsonl`, and those of sub-agents in `<session id>/subagents/agent-<id>.jsonl` beside it.
 */
export function keyOf({ session_id: sessionId, transcript_path: path, agent_id: agent }: HookInput): SessionKey {
  const parts = path.split(/[/\\]/);
  const at = parts.lastIndexOf("projects");
  const projectKey = at >= 0 && parts[at + 1] ? parts[at + 1]! : (parts.at(-2) ?? "");
  return agent === undefined
    ? { projectKey, sessionId }
    : { projectKey, sessionId, subpath: `subagents/agent-${agent}` };
}
