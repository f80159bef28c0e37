import type { ContentBlock } from "@agentclientprotocol/sdk/unstable";
import type { PromptImage } from "@holdfast/server/contract";

export interface GivenPrompt {
  readonly text: string;
  readonly images: readonly PromptImage[];
}

/**
 * A prompt as the agent takes it. Links are named where they stand in the sentence; the content of attached files comes
 * after it, fenced. Throws if a block is of a kind that the agent did not say it accepts.
 */
export function promptOf(blocks: readonly ContentBlock[]): GivenPrompt {
  const said: string[] = [];
  const attached: string[] = [];
  const images: PromptImage[] = [];
  for (const block of blocks) {
    switch (block.type) {
      case "text":
        said.push(block.text);
        break;
      case "image":
        images.push({ name: block.uri ?? `image ${images.length + 1}`, mediaType: block.mimeType, data: block.data });
        break;
      case "resource_link":
        said.push(`@${pathOf(block.uri)}`);
        break;
      case "resource": {
        const { resource } = block;
        if (!("text" in resource)) throw new TypeError(`The attachment ${resource.uri} is not text.`);
        said.push(`@${pathOf(resource.uri)}`);
        attached.push(fenced(pathOf(resource.uri), resource.text));
        break;
      }
      default:
        throw new TypeError(`This agent does not accept prompts with content of the type "${block.type}".`);
    }
  }
  return { text: [said.join(""), ...attached].join("\n\n").trim(), images };
}

/** The path of a file URL, and any other address as it is. */
export function pathOf(uri: string): string {
  if (!uri.startsWith("file://")) return uri;
  try {
    return decodeURIComponent(new URL(uri).pathname);
  } catch {
    return uri;
  }
}

/** With a fence that is longer than any in the text. */
function fenced(path: string, text: string): string {
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map(([run]) => run.length));
  const fence = "`".repeat(longest + 1);
  return `Content of ${path}:\n${fence}\n${text}\n${fence}`;
}
