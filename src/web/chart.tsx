import { useEffect, useRef, useState } from 'preact/hooks';
import UPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { browserTime } from './browser-time.ts';
import { short } from './format.ts';
import { Painter } from './painter.ts';

/** A line of a chart. */
export interface Line {
  readonly label: string;
  /** Name of the custom property with its colour. */
  readonly color: string;
  /** On the right-hand axis, from 0 to 1, as per cent. */
  readonly share?: boolean;
  readonly dashed?: boolean;
}

/** What a chart shows: x, then a column for each line. Told when there is more. */
export interface ChartData {
  points(): (number | null)[][];
  /** Returns unsubscribe. */
  onChange(listener: () => void): () => void;
}

export interface ChartProps {
  readonly title: string;
  /** What x is, e.g. `epoch`. */
  readonly x: string;
  readonly lines: readonly Line[];
  readonly data: ChartData;
  readonly isTime?: boolean;
}

const height = 220;

/** A time series that a mouse, a finger and arrow keys read; its numbers are below it as text. */
export function Chart(props: ChartProps) {
  const { title, x, lines, data } = props;
  const place = useRef<HTMLDivElement>(null);
  const frame = useRef<HTMLElement>(null);
  const plot = useRef<UPlot | null>(null);
  const [at, setAt] = useState<number | null>(null);
  const [, setDrawn] = useState(0);
  useEffect(() => {
    const element = place.current;
    if (element === null) return;
    const painter = new Painter(() => {
      const chart = plot.current;
      if (chart === null) return;
      chart.setData(data.points() as UPlot.AlignedData);
      if (frame.current !== null) frame.current.dataset['draws'] = String(painter.draws);
      setDrawn(painter.draws);
    }, browserTime);
    const build = () => {
      plot.current?.destroy();
      const options = optionsOf(props, element, setAt);
      plot.current = new UPlot(options, data.points() as UPlot.AlignedData, element);
    };
    build();
    const forget = data.onChange(() => painter.ask());
    const resizing = new ResizeObserver(() => {
      const width = element.clientWidth;
      if (width > 0 && plot.current?.width !== width) plot.current?.setSize({ width, height });
    });
    resizing.observe(element);
    const scheme = matchMedia('(prefers-color-scheme: dark)');
    scheme.addEventListener('change', build);
    return () => {
      scheme.removeEventListener('change', build);
      resizing.disconnect();
      forget();
      painter.stop();
      plot.current?.destroy();
      plot.current = null;
    };
  }, [data]);
  const points = data.points();
  const count = points[0]?.length ?? 0;
  const index = at === null ? count - 1 : Math.min(at, count - 1);
  return (
    <figure class="chart" ref={frame}>
      <figcaption>{title}</figcaption>
      <div
        ref={place}
        class="plot"
        role="slider"
        tabIndex={0}
        aria-label={title}
        aria-valuemin={0}
        aria-valuemax={Math.max(0, count - 1)}
        aria-valuenow={Math.max(0, index)}
        aria-valuetext={describe(points, index, x, lines)}
        onKeyDown={(event) => {
          const step = stepOf(event.key, count);
          if (step === null) return;
          event.preventDefault();
          const next = Math.max(0, Math.min(count - 1, index + step));
          setAt(next);
          moveCursor(plot.current, points[0]?.[next] ?? null);
        }}
      />
      <Reading index={index} points={points} x={x} lines={lines} />
    </figure>
  );
}

/** The values at the cursor, or the last ones. */
function Reading({
  index,
  points,
  x,
  lines,
}: Pick<ChartProps, 'x' | 'lines'> & {
  readonly index: number;
  readonly points: (number | null)[][];
}) {
  return (
    <p class="reading" aria-live="off">
      <span>
        {x} {numberOr(points[0]?.[index])}
      </span>
      {lines.map((line, column) => (
        <span key={line.label}>
          <i class={`key ${line.dashed === true ? 'dashed' : ''}`} data-color={line.color} />
          {line.label} <b>{textOf(line, points[column + 1]?.[index])}</b>
        </span>
      ))}
    </p>
  );
}

function stepOf(key: string, count: number): number | null {
  const page = Math.max(1, Math.round(count / 10));
  const steps: Readonly<Record<string, number>> = {
    ...{ ArrowLeft: -1, ArrowRight: 1, PageUp: -page, PageDown: page, Home: -count, End: count },
  };
  return steps[key] ?? null;
}

function moveCursor(chart: UPlot | null, x: number | null): void {
  if (chart === null || x === null) return;
  chart.setCursor({ left: chart.valToPos(x, 'x'), top: chart.bbox.height / 4 }, false);
}

function describe(
  points: (number | null)[][],
  index: number,
  x: string,
  lines: readonly Line[],
): string {
  if (index < 0) return 'nothing yet';
  const values = lines.map((line, column) => {
    return `${line.label} ${textOf(line, points[column + 1]?.[index])}`;
  });
  return [`${x} ${numberOr(points[0]?.[index])}`, ...values].join(', ');
}

function numberOr(value: number | null | undefined): string {
  return value === null || value === undefined ? '–' : short(value);
}

function textOf(line: Line, value: number | null | undefined): string {
  if (value === null || value === undefined) return '–';
  return line.share === true ? `${(100 * value).toFixed(1)} %` : short(value);
}

/** A colour of the page's style, which knows light and dark. */
function colorOf(element: Element, name: string): string {
  return getComputedStyle(element).getPropertyValue(name).trim();
}

function seconds(_: UPlot, values: number[]): string[] {
  return values.map((value) => `${value} s`);
}

function optionsOf(
  { lines, x }: ChartProps,
  element: HTMLElement,
  setAt: (index: number | null) => void,
): UPlot.Options {
  const stroke = colorOf(element, '--muted');
  const grid = { stroke: colorOf(element, '--line'), width: 1 };
  const hasShares = lines.some(({ share }) => share === true);
  const hasNumbers = lines.some(({ share }) => share !== true);
  const axis = { stroke, grid, ticks: grid, font: '12px system-ui, sans-serif' };
  const right = { ...axis, scale: 'share', side: hasNumbers ? 1 : 3, size: 56 } as const;
  const percents = (_: UPlot, values: number[]) =>
    values.map((value) => `${Math.round(100 * value)} %`);
  return {
    width: Math.max(100, element.clientWidth),
    height,
    legend: { show: false },
    cursor: { y: false, points: { size: 7 }, drag: { x: false, y: false } },
    scales: { x: { time: false }, share: { range: [0, 1] } },
    axes: [
      { ...axis, size: 30, ...(x === 'second' ? { values: seconds } : {}) },
      ...(hasNumbers ? [{ ...axis, size: 48 }] : []),
      ...(hasShares ? [{ ...right, values: percents, grid: { show: !hasNumbers, ...grid } }] : []),
    ],
    series: [
      {},
      ...lines.map((line) => ({
        label: line.label,
        stroke: colorOf(element, line.color),
        width: 2,
        spanGaps: true,
        scale: line.share === true ? 'share' : 'y',
        ...(line.dashed === true ? { dash: [5, 4] } : {}),
      })),
    ],
    hooks: { setCursor: [({ cursor }) => setAt(cursor.idx ?? null)] },
  };
}
