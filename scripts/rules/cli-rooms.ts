import type { PackageRooms } from "./rooms.ts";

/** The rooms of the command, from the bottom to the top, with what each may import. */
export const CLI_ROOMS: PackageRooms = {
  sources: "packages/cli/src/",
  base: [
    "defined.ts",
    "exit.ts",
    "home.ts",
    "own-folder.ts",
    "read-address.ts",
    "shared-file.ts",
    "short-id.ts",
    "without-passwords.ts",
  ],
  rooms: {
    "version.ts": [],
    // How the user's MCP servers are configured, and what their tools are called.
    "mcp-settings/": [],
    "config.ts": ["mcp-settings/"],
    // The commands that hints tell people to type.
    "typed-command.ts": ["config.ts"],
    // Text for people: harmless, measured, in columns.
    "terminal/": [],
    "failure.ts": ["typed-command.ts", "terminal/"],
    // The sessions of a store, as the commands name and open them.
    "store/": ["typed-command.ts", "config.ts", "failure.ts", "terminal/"],

    // A conversation as people read it, in any dialect.
    "transcript/": ["typed-command.ts", "terminal/"],
    "export/dialects/": ["transcript/"],
    "export/": ["export/dialects/", "store/", "terminal/", "transcript/"],
    "copy/": ["config.ts", "store/"],

    // What the agent can do, and what it may do without asking.
    "tools/paths/": ["store/"],
    "tools/results/": [],
    "tools/files/": ["tools/paths/", "tools/results/"],
    "tools/shell/": ["tools/results/"],
    "tools/permission/": ["mcp-settings/", "store/", "tools/paths/"],
    "tools/": ["tools/files/", "tools/shell/", "transcript/"],
    "trust/": ["store/", "terminal/", "tools/paths/"],

    // What has changed in the working folder since a call began.
    "evidence/": ["typed-command.ts", "store/", "tools/paths/", "tools/shell/", "transcript/", "trust/"],

    // MCP servers: started, restarted and ended; their tools and results, in the forms of the agent's own.
    "mcp/": ["mcp-settings/", "terminal/", "tools/results/", "tools/shell/"],

    // Our own MCP server: past sessions for any agent.
    "mcp-server/": [
      "typed-command.ts",
      "config.ts",
      "evidence/",
      "export/",
      "failure.ts",
      "serve/",
      "store/",
      "terminal/",
      "transcript/",
      "version.ts",
    ],

    "models/offline/evidence/": [],
    "models/offline/kinds/": ["models/offline/evidence/"],
    "models/offline/": ["models/offline/evidence/", "models/offline/kinds/"],
    "models/": ["models/offline/"],

    // One agent in one session.
    "agent/": [
      ...["config.ts", "evidence/", "models/", "store/", "transcript/", "trust/"],
      ...[
        "mcp/",
        "mcp-settings/",
        "tools/",
        "tools/files/",
        "tools/paths/",
        "tools/permission/",
        "tools/results/",
        "tools/shell/",
      ],
    ],

    // The contract between an agent and what shows it; what a person is asked; the agent in this process.
    "host/": ["models/", "tools/files/", "tools/permission/", "transcript/"],
    "host/approval/": ["agent/", "host/", "terminal/", "tools/files/", "tools/permission/"],
    "host/local/": [
      "typed-command.ts",
      ...["agent/", "config.ts", "evidence/", "host/", "host/approval/", "models/", "store/", "transcript/", "trust/"],
      ...["mcp/", "mcp-settings/", "tools/permission/", "tools/shell/", "version.ts"],
    ],

    // A server for these agents, and the way to one.
    "serve/": [
      "typed-command.ts",
      ...["config.ts", "evidence/", "export/", "failure.ts", "host/local/"],
      ...["store/", "terminal/", "transcript/", "trust/"],
      "version.ts",
    ],

    // The chat in a terminal.
    "screen/lines/": ["failure.ts", "host/", "terminal/", "transcript/"],
    "screen/input/": ["host/", "terminal/", "transcript/"],
    "screen/panels/": ["host/", "host/approval/", "screen/lines/", "terminal/", "transcript/"],
    "screen/pickers/": ["host/", "screen/input/", "screen/lines/", "store/", "terminal/", "transcript/"],
    "screen/drawing/": ["host/", "screen/input/", "screen/lines/", "screen/panels/", "terminal/", "transcript/"],
    "screen/": [
      "typed-command.ts",
      ...["config.ts", "export/", "host/", "host/local/", "serve/", "store/", "terminal/", "tools/permission/"],
      ...["screen/drawing/", "screen/input/", "screen/lines/", "screen/panels/", "screen/pickers/"],
    ],

    // The sessions of other agents.
    "doctor/": [
      ...["typed-command.ts", "config.ts", "export/", "export/dialects/", "failure.ts", "store/", "terminal/"],
      ...["transcript/", "trust/"],
    ],

    // The other surfaces.
    "run/": [
      "typed-command.ts",
      ...["config.ts", "failure.ts", "host/", "host/approval/", "host/local/", "store/", "terminal/", "transcript/"],
      // The layout of Markdown.
      "screen/lines/",
      // Agents that others wrote.
      ...["acp/", "version.ts"],
    ],
    // The agent inside an editor.
    "acp/": [
      ...["config.ts", "evidence/", "failure.ts", "host/local/", "serve/", "store/", "terminal/", "transcript/"],
      ...["tools/paths/", "tools/permission/", "trust/", "version.ts"],
    ],
    // Agents in the settings of editors.
    "editors/": ["terminal/"],
    "demo/": ["host/", "store/", "terminal/", "tools/shell/", "transcript/"],

    // One file for each command; what they need is loaded when they run.
    "commands/": [
      ...["config.ts", "demo/", "export/", "failure.ts", "mcp/", "mcp-server/", "mcp-settings/", "store/"],
      ...["terminal/", "tools/permission/", "tools/shell/", "trust/", "version.ts"],
    ],
    "commands/agent/": ["typed-command.ts", "acp/", "commands/", "config.ts", "editors/", "run/", "screen/", "serve/"],
    "commands/sessions/": [
      "typed-command.ts",
      ...[
        "commands/",
        "doctor/",
        "evidence/",
        "export/",
        "failure.ts",
        "screen/lines/",
        "store/",
        "terminal/",
        "transcript/",
        "trust/",
      ],
    ],
    "commands/store/": [
      "typed-command.ts",
      ...["commands/", "copy/", "doctor/", "export/", "failure.ts", "store/", "terminal/", "trust/"],
    ],
    "main.ts": [
      "typed-command.ts",
      ...["commands/", "commands/agent/", "commands/sessions/", "commands/store/"],
      ...["failure.ts", "terminal/", "version.ts"],
    ],
    "compile-cache.ts": [],
    "bin.ts": ["compile-cache.ts", "main.ts", "version.ts"],
  },
};
