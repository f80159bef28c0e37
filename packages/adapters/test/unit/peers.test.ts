import { expect, test } from "vitest";
import root from "../../../../package.json" with { type: "json" };
import own from "../../package.json" with { type: "json" };

const tested: Readonly<Record<string, string>> = root.devDependencies;

test("a framework's range begins with the version that is tested: earlier ones may lack what the adapter uses", () => {
  // Its package is 350 MB, so it is installed apart.
  const { "@anthropic-ai/claude-agent-sdk": _, ...peers } = own.peerDependencies;
  expect(peers).toEqual(Object.fromEntries(Object.keys(peers).map((name) => [name, `^${tested[name]}`])));
  expect(Object.keys(own.peerDependenciesMeta).toSorted()).toEqual(Object.keys(own.peerDependencies).toSorted());
});
