import type { Status, Tree, TreeNode } from "../api/wire.ts";
import { StatusChip } from "../parts/Chip.tsx";
import { Icon } from "../parts/Icon.tsx";
import { hashOf } from "../state/route.ts";
import { useLoaded } from "./use-loaded.ts";

/** The sub-agents of a session as a tree, and where the session comes from. */
export function TreePanel({ id, version }: { readonly id: string; readonly version: unknown }) {
  const { value, failure } = useLoaded<Tree>(`/sessions/${id}/tree`, version);
  if (failure)
    return (
      <p class="empty" role="alert">
        {failure}
      </p>
    );
  if (!value) return <p class="empty">Loading…</p>;
  const { tree, forkedFrom } = value;
  return (
    <div class="panel tree">
      <h2>Sub-agents</h2>
      {tree.children.length === 0 ? (
        <p class="hint">This session has started no sub-agents.</p>
      ) : (
        <ul class="tree-root">
          <Node node={tree} here={id} />
        </ul>
      )}
      {forkedFrom ? (
        <>
          <h2>Forked from</h2>
          <p>
            <Icon name="fork" />{" "}
            <a href={hashOf({ session: forkedFrom.session })}>{forkedFrom.title ?? "a session that cannot be read"}</a>{" "}
            · <a href={hashOf({ session: id, tab: "compare" })}>Compare the two</a>
          </p>
        </>
      ) : null}
    </div>
  );
}

function Node({ node, here }: { readonly node: TreeNode; readonly here: string }) {
  return (
    <li>
      <div class="tree-node">
        {node.session === here ? (
          <strong aria-current="page">{node.title || "(no title)"}</strong>
        ) : (
          <a href={hashOf({ session: node.session })}>{node.title || "(no title)"}</a>
        )}
        <StatusChip status={node.status as Status} />
      </div>
      {node.children.length > 0 ? (
        <ul>
          {node.children.map((child) => (
            <Node key={child.session} node={child} here={here} />
          ))}
        </ul>
      ) : null}
    </li>
  );
}
