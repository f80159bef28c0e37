import { type Observable, useValue } from "../state/observable.ts";
import { ROWS } from "../timeline/draw.ts";
import type { Stretch, TimeScale, Viewport } from "../timeline/time-scale.ts";

/** What the transcript shows. Not on the canvas, which would be drawn again in each frame of a scroll. */
export function ReadingBand({
  reading,
  scale,
  view,
  height,
}: {
  readonly reading: Observable<Stretch | null>;
  readonly scale: TimeScale;
  readonly view: Viewport;
  readonly height: number;
}) {
  const shown = useValue(reading);
  if (!shown) return null;
  const share = (ms: number): number => {
    const at = scale.at(Math.min(scale.endMs, Math.max(scale.startMs, ms)));
    return Math.min(1, Math.max(0, (at - view.from) / (view.to - view.from)));
  };
  const [from, to] = [share(shown.startMs), share(shown.endMs)];
  const isOutside = from === to && (from === 0 || from === 1);
  return (
    <div
      class="timeline-reading"
      hidden={isOutside}
      style={{
        top: `${ROWS.marks - 4}px`,
        left: `${100 * from}%`,
        width: `max(3px, ${100 * (to - from)}%)`,
        height: `${height - ROWS.axis - ROWS.marks + 4}px`,
      }}
    />
  );
}
