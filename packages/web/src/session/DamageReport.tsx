import { useEffect, useState } from "preact/hooks";
import { get, post } from "../api/http.ts";
import type { Damage } from "../api/wire.ts";
import { Dialog } from "../parts/Dialog.tsx";
import { Icon } from "../parts/Icon.tsx";
import { attempt, say } from "../state/toasts.ts";
import { countWords } from "../text/durations.ts";

/** What opening the session found wrong with its journal, in words. */
export function DamageBanner({
  damage,
  onCheck,
}: {
  readonly damage: readonly string[];
  readonly onCheck: (() => void) | null;
}) {
  if (damage.length === 0) return null;
  return (
    <section class="damage" aria-label="Damage">
      <h2>
        <Icon name="warning" />
        {damage.length === 1
          ? "Something is wrong with this session’s journal"
          : "Some things are wrong with this session’s journal"}
      </h2>
      <ul>
        {damage.slice(0, 20).map((words) => (
          <li key={words}>{words}</li>
        ))}
      </ul>
      {onCheck ? (
        <button type="button" class="button" onClick={onCheck}>
          <Icon name="wrench" />
          Check the whole journal
        </button>
      ) : null}
    </section>
  );
}

/** The result of reading every byte of a journal. */
export function DamageDialog({ id, onClose }: { readonly id: string; readonly onClose: () => void }) {
  const [damage, setDamage] = useState<Damage | null>(null);
  const check = (): void => void attempt(() => get<Damage>(`/sessions/${id}/damage`), setDamage);
  useEffect(check, [id]);
  const heal = (): void =>
    void attempt(
      () => post(`/sessions/${id}/heal`),
      () => {
        say("Repaired. What could not be read is kept aside, and was not deleted.");
        check();
      },
    );
  return (
    <Dialog title="Check for damage" onClose={onClose}>
      {damage ? <Report damage={damage} onHeal={heal} /> : <p>Reading every record…</p>}
    </Dialog>
  );
}

function Report({ damage, onHeal }: { readonly damage: Damage; readonly onHeal: () => void }) {
  const { records, bytes, segments, damaged, missing, cutBytes, unclean, quarantine, beingWritten } = damage;
  const isSound = damaged.length === 0 && missing.length === 0 && cutBytes === 0;
  return (
    <div class="report">
      <p class={isSound ? "good" : "bad"}>
        <Icon name={isSound ? "check" : "warning"} />
        {isSound ? "All records are whole." : "Not all of the journal can be read."}
      </p>
      <p>
        {countWords(records, "record")}, {countWords(bytes, "byte")}, {countWords(segments, "file")}.
        {beingWritten ? " A process is writing to it now." : ""}
        {unclean && !beingWritten ? " The last process did not close it." : ""}
      </p>
      {cutBytes > 0 ? (
        <p>{countWords(cutBytes, "byte")} at the end were never acknowledged: the process died while it wrote them.</p>
      ) : null}
      {damaged.length > 0 ? (
        <>
          <h3>Damaged places</h3>
          <ul>
            {damaged.slice(0, 50).map((one) => (
              <li key={`${one.segment}${one.offset}`}>
                <code>{one.segment}</code>, {countWords(one.bytes, "byte")} from {one.offset.toLocaleString("en")}:{" "}
                {one.why === "corrupt" ? "cannot be read" : "not a record of this session"}
                {one.seq === undefined ? "" : ` (record ${one.seq})`}
              </li>
            ))}
          </ul>
        </>
      ) : null}
      {missing.length > 0 ? (
        <>
          <h3>Missing records</h3>
          <ul>
            {missing.slice(0, 50).map(({ from, to }) => (
              <li key={from}>{from === to ? `record ${from}` : `records ${from} to ${to}`}</li>
            ))}
          </ul>
        </>
      ) : null}
      {quarantine ? (
        <p>
          What was cut off is kept in <code>{quarantine}</code>.
        </p>
      ) : null}
      {isSound && !unclean ? null : (
        <div class="buttons">
          <button type="button" class="button button-main" onClick={onHeal}>
            Repair what a crash left behind
          </button>
        </div>
      )}
    </div>
  );
}
