import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { JobTimeline } from '../api/gen/gnnd/v1/timeline_pb.ts';
import { short } from './format.ts';
import { activities, type Lane, lanesOf, roleName, sentenceOf } from './lanes.ts';

const laneHeight = 34;

/** Who sampled, trained, stood by and evaluated when: a lane for each role of each device. */
export function LanesView({ timeline }: { readonly timeline: JobTimeline }) {
  const { ends, lanes } = useMemo(() => lanesOf(timeline), [timeline]);
  const [at, setAt] = useState<number | null>(null);
  const last = ends.length - 1;
  // After the last batch nobody does anything while the model is written.
  const busy = ends.findLastIndex((_, stretch) => lanes.some((lane) => isTold(lane, stretch)));
  const index = at === null ? Math.max(0, busy) : Math.min(at, last);
  const end = ends.at(-1) ?? 0;
  if (lanes.length === 0) return <p class="empty">Nothing was trained yet.</p>;
  return (
    <figure class="lanes">
      <ul class="legend" aria-label="Colours">
        {activities.map(({ label, meaning, color }) => (
          <li key={label}>
            <i class="key block" data-color={color} />
            {label.length === 1 ? `${label} ${meaning}` : meaning}
          </li>
        ))}
      </ul>
      <div
        class="lane-field"
        role="slider"
        tabIndex={0}
        aria-label="Time"
        aria-valuemin={0}
        aria-valuemax={Math.max(0, last)}
        aria-valuenow={index}
        aria-valuetext={`second ${short(ends[index] ?? 0)}`}
        onKeyDown={(event) => {
          const next = nextOf(event.key, index, last);
          if (next === null) return;
          event.preventDefault();
          setAt(next);
        }}
        onPointerMove={(event) => {
          const { left, width } = event.currentTarget.getBoundingClientRect();
          const second = ((event.clientX - left) / width) * end;
          const found = ends.findIndex((stretchEnd) => stretchEnd >= second);
          setAt(found < 0 ? last : found);
        }}
        onPointerLeave={() => setAt(null)}
      >
        {lanes.map((lane) => (
          <div class="lane" key={`${lane.device} ${lane.role}`}>
            <span>
              <b>{lane.device}</b> {roleName(lane.role)}
            </span>
            <LaneCanvas lane={lane} ends={ends} cursor={at === null ? null : index} />
          </div>
        ))}
      </div>
      <p class="scale" aria-hidden="true">
        <span>0 s</span>
        <span>{short(end)} s</span>
      </p>
      <dl class="reading">
        <dt>second {short(ends[index] ?? 0)}</dt>
        {lanes.map((lane) => (
          <dd key={`${lane.device} ${lane.role}`}>
            <b>
              {lane.device} {roleName(lane.role)}
            </b>{' '}
            {sentenceOf(lane, index)}
          </dd>
        ))}
      </dl>
    </figure>
  );
}

function isTold({ shares }: Lane, index: number): boolean {
  return (shares[index] ?? []).some((share) => share >= 0.01);
}

function nextOf(key: string, index: number, last: number): number | null {
  const steps: Readonly<Record<string, number>> = {
    ...{ ArrowLeft: index - 1, ArrowRight: index + 1, Home: 0, End: last },
    ...{ PageUp: index - 10, PageDown: index + 10 },
  };
  const next = steps[key];
  return next === undefined ? null : Math.max(0, Math.min(last, next));
}

interface LaneProps {
  readonly lane: Lane;
  readonly ends: readonly number[];
  readonly cursor: number | null;
}

function LaneCanvas(props: LaneProps) {
  const place = useRef<HTMLCanvasElement>(null);
  const { lane, ends, cursor } = props;
  useEffect(() => {
    const canvas = place.current;
    if (canvas === null) return;
    const draw = () => drawLane(canvas, props);
    draw();
    const resizing = new ResizeObserver(draw);
    resizing.observe(canvas);
    const scheme = matchMedia('(prefers-color-scheme: dark)');
    scheme.addEventListener('change', draw);
    return () => {
      scheme.removeEventListener('change', draw);
      resizing.disconnect();
    };
  }, [lane, ends, cursor]);
  return <canvas ref={place} class="lane-canvas" />;
}

/** A column for each stretch, in it a part for each activity; what nobody told is left blank. */
function drawLane(canvas: HTMLCanvasElement, { lane, ends, cursor }: LaneProps): void {
  const context = canvas.getContext('2d');
  const width = canvas.clientWidth;
  if (context === null || width === 0) return;
  const scale = devicePixelRatio;
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round(laneHeight * scale);
  context.scale(scale, scale);
  const style = getComputedStyle(canvas);
  const colors = activities.map(({ color }) => style.getPropertyValue(color).trim());
  const end = ends.at(-1) ?? 1;
  lane.shares.forEach((shares, index) => {
    const left = ((ends[index - 1] ?? 0) / end) * width;
    const right = ((ends[index] ?? end) / end) * width;
    let bottom = laneHeight;
    shares.forEach((share, activity) => {
      const height = share * laneHeight;
      context.fillStyle = colors[activity] ?? '';
      // Half a pixel more, lest seams show between columns.
      context.fillRect(left, bottom - height, right - left + 0.5, height);
      bottom -= height;
    });
  });
  if (cursor === null) return;
  const x = ((ends[cursor] ?? end) / end) * width;
  context.fillStyle = style.getPropertyValue('--ink').trim();
  context.fillRect(Math.min(width - 1.5, x), 0, 1.5, laneHeight);
}

/** The share of each executor's time that each stage had over the whole attempt. */
export function StagesTable({ timeline }: { readonly timeline: JobTimeline }) {
  const { lanes } = lanesOf(timeline);
  if (lanes.length === 0) return null;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: it is scrolled with arrow keys.
    <section class="wide" tabIndex={0} aria-label="Where the time went">
      <table>
        <thead>
          <tr>
            <th scope="col">Executor</th>
            {activities.map(({ label, meaning }) => (
              <th scope="col" key={label} title={meaning}>
                {label}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {lanes.map((lane) => (
            <tr key={`${lane.device} ${lane.role}`}>
              <th scope="row">
                {lane.device} {roleName(lane.role)}
              </th>
              {activities.map(({ label }, index) => (
                <td key={label}>{shareText((lane.totalNs[index] ?? 0) / lane.durationNs)}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

function shareText(share: number): string {
  if (!(share > 0)) return '–';
  return share < 0.001 ? '< 0.1 %' : `${(100 * share).toFixed(1)} %`;
}
