/** The Claude Agent SDK as it is installed outside the workspace (bench/peers/install.ts): it brings 350 MB with it. */
export const CLAUDE_AGENT_SDK = {
  key: "claude-agent-sdk",
  name: "the Claude Agent SDK",
  survives: "kill",
  driven: "",
  packages: {
    "@anthropic-ai/claude-agent-sdk": "0.3.325",
    "@anthropic-ai/sdk": "1.8.0",
    "@modelcontextprotocol/sdk": "1.32.2",
    zod: "4.6.7",
  },
} as const;
