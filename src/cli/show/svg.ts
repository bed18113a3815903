import { unreachable } from '../../base/errors.ts';

/** Just enough SVG for charts: light, no scripts, readable in any browser. */

export interface Series {
  readonly name: string;
  readonly points: readonly { readonly x: number; readonly y: number }[];
}

export interface Range {
  readonly low: number;
  readonly high: number;
}

export interface LineChart {
  readonly kind: 'lines';
  readonly title: string;
  readonly xTitle: string;
  /** Behind each number of the axis; unset: percent. */
  readonly xUnit?: string;
  /** Percent at the foot and the head of the axis; unset: 0 and 100. */
  readonly yRange?: Range;
  readonly series: readonly Series[];
}

export interface BarChart {
  readonly kind: 'bars';
  readonly title: string;
  readonly groups: readonly {
    readonly name: string;
    readonly bars: readonly { readonly name: string; readonly y: number }[];
  }[];
}

/** Bars of parts, one above the other; the parts' names are the key. */
export interface StackChart {
  readonly kind: 'stacks';
  readonly title: string;
  readonly parts: readonly string[];
  readonly groups: readonly {
    readonly name: string;
    readonly stacks: readonly { readonly name: string; readonly ys: readonly number[] }[];
  }[];
}

/** Spans of parts along one axis, in a lane for each owner. */
export interface LaneChart {
  readonly kind: 'lanes';
  readonly title: string;
  readonly xTitle: string;
  readonly parts: readonly string[];
  readonly lanes: readonly {
    readonly name: string;
    /** By the number of their part. */
    readonly spans: readonly {
      readonly from: number;
      readonly to: number;
      readonly part: number;
    }[];
  }[];
}

/** Values are percent, 0 to 100. */
export type Chart = LineChart | BarChart | StackChart | LaneChart;

const wholeRange: Range = { low: 0, high: 100 };

const size = { width: 576, height: 320, left: 68, right: 150, top: 34, bottom: 44 } as const;
const plot = {
  width: size.width - size.left - size.right,
  height: size.height - size.top - size.bottom,
} as const;

/** Told apart also without colour vision (Okabe and Ito). */
const colours = [
  '#000000',
  '#0072b2',
  '#d55e00',
  '#009e73',
  '#cc79a7',
  '#e69f00',
  '#56b4e9',
  '#999999',
] as const;

/** The charts below one another, as one document. */
export function svgOf(charts: readonly Chart[]): string {
  const height = size.height * charts.length;
  const parts = charts.map(
    (chart, i) => `<g transform="translate(0 ${i * size.height})">\n${chartOf(chart)}\n</g>`,
  );
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${size.width}" height="${height}" ` +
      `viewBox="0 0 ${size.width} ${height}" font-family="sans-serif" font-size="12">`,
    `<rect width="${size.width}" height="${height}" fill="white"/>`,
    ...parts,
    '</svg>\n',
  ].join('\n');
}

function chartOf(chart: Chart): string {
  const title = text(size.left, 20, chart.title, 'font-weight="bold"');
  return [title, ...bodyOf(chart)].join('\n');
}

function bodyOf(chart: Chart): readonly string[] {
  switch (chart.kind) {
    case 'lines':
      return [...yAxis(chart.yRange), ...linesOf(chart)];
    case 'bars':
      return [...yAxis(), ...barsOf(chart)];
    case 'stacks':
      return [...yAxis(), ...stacksOf(chart)];
    case 'lanes':
      return lanesOf(chart);
    default:
      return unreachable(chart);
  }
}

function yAxis(range = wholeRange): readonly string[] {
  return [0, 1, 2, 3, 4, 5].flatMap((fifth) => {
    const value = range.low + ((range.high - range.low) * fifth) / 5;
    return [
      `<path d="M${size.left} ${yOf(value, range)}h${plot.width}" stroke="#ddd"/>`,
      text(size.left - 6, yOf(value, range) + 4, `${round(value)} %`, 'text-anchor="end"'),
    ];
  });
}

function linesOf({ series, xTitle, xUnit = ' %', yRange }: LineChart): readonly string[] {
  const xs = [...new Set(series.flatMap(({ points }) => points.map(({ x }) => x)))];
  const low = Math.min(...xs);
  const span = Math.max(...xs) - low || 1;
  const xOf = (x: number) => round(size.left + ((x - low) / span) * plot.width);
  const lines = series.flatMap(({ name, points }, i) => {
    const path = points.map(({ x, y }, k) => `${k === 0 ? 'M' : 'L'}${xOf(x)} ${yOf(y, yRange)}`);
    const stroke = `stroke="${colourOf(i)}"`;
    const dots = points.map(
      ({ x, y }) => `<circle cx="${xOf(x)}" cy="${yOf(y, yRange)}" r="2.5" fill="${colourOf(i)}"/>`,
    );
    return [
      `<path d="${path.join('')}" fill="none" ${stroke} stroke-width="1.5"/>`,
      ...dots,
      key(name, i),
    ];
  });
  const ticks = xs.map((x) =>
    text(xOf(x), yOf(0) + 16, `${round(x)}${xUnit}`, 'text-anchor="middle"'),
  );
  const title = text(size.left + plot.width / 2, size.height - 8, xTitle, 'text-anchor="middle"');
  return [...ticks, title, ...lines];
}

function barsOf({ groups }: BarChart): readonly string[] {
  const groupWidth = plot.width / Math.max(1, groups.length);
  const bars = groups.flatMap((group, g) => {
    const left = size.left + g * groupWidth;
    const width = (groupWidth * 0.8) / Math.max(1, group.bars.length);
    const label = text(left + groupWidth / 2, yOf(0) + 16, group.name, 'text-anchor="middle"');
    const boxes = group.bars.map(({ y }, i) => {
      const x = round(left + groupWidth * 0.1 + i * width);
      const height = round(yOf(0) - yOf(y));
      return (
        `<rect x="${x}" y="${yOf(y)}" width="${round(width * 0.9)}" height="${height}" ` +
        `fill="${colourOf(i)}"/>`
      );
    });
    return [label, ...boxes];
  });
  return [...bars, ...(groups[0]?.bars ?? []).map(({ name }, i) => key(name, i))];
}

function stacksOf({ groups, parts }: StackChart): readonly string[] {
  const groupWidth = plot.width / Math.max(1, groups.length);
  const drawn = groups.flatMap((group, g) => {
    const left = size.left + g * groupWidth;
    const width = (groupWidth * 0.8) / Math.max(1, group.stacks.length);
    const label = text(left + groupWidth / 2, yOf(0) + 16, group.name, 'text-anchor="middle"');
    const stacks = group.stacks.flatMap(({ name, ys }, i) => {
      const x = round(left + groupWidth * 0.1 + i * width);
      let below = 0;
      const boxes = ys.map((y, part) => {
        below += y;
        const height = round(yOf(below - y) - yOf(below));
        return (
          `<rect x="${x}" y="${yOf(below)}" width="${round(width * 0.9)}" height="${height}" ` +
          `fill="${colourOf(part + 1)}"/>`
        );
      });
      const middle = round(x + width * 0.45);
      const turned = `text-anchor="start" transform="rotate(-90 ${middle} ${yOf(2)})"`;
      return [...boxes, text(middle, yOf(2) + 4, name, `${turned} fill="white" font-size="10"`)];
    });
    return [label, ...stacks];
  });
  return [...drawn, ...parts.map((name, i) => key(name, i + 1, i))];
}

function lanesOf({ lanes, parts, xTitle }: LaneChart): readonly string[] {
  const end = Math.max(1, ...lanes.flatMap(({ spans }) => spans.map(({ to }) => to)));
  const xOf = (x: number) => round(size.left + (x / end) * plot.width);
  const height = plot.height / Math.max(1, lanes.length);
  const drawn = lanes.flatMap(({ name, spans }, i) => {
    const y = round(size.top + i * height);
    const boxes = spans.map(
      ({ from, to, part }) =>
        `<rect x="${xOf(from)}" y="${y}" width="${round(xOf(to) - xOf(from))}" ` +
        `height="${round(height * 0.8)}" fill="${colourOf(part + 1)}"/>`,
    );
    return [text(size.left - 6, y + height * 0.4 + 4, name, 'text-anchor="end"'), ...boxes];
  });
  const ticks = [0, 1, 2, 3, 4].map((quarter) => {
    const x = (end * quarter) / 4;
    return text(xOf(x), yOf(0) + 16, `${round(x)} %`, 'text-anchor="middle"');
  });
  const title = text(size.left + plot.width / 2, size.height - 8, xTitle, 'text-anchor="middle"');
  return [...drawn, ...ticks, title, ...parts.map((name, i) => key(name, i + 1, i))];
}

/** Draws a line of the key: a colour and its name. */
function key(name: string, index: number, line = index): string {
  const x = size.left + plot.width + 12;
  const y = size.top + 6 + line * 18;
  return [
    `<rect x="${x}" y="${y}" width="10" height="10" fill="${colourOf(index)}"/>`,
    text(x + 16, y + 9, name),
  ].join('\n');
}

function colourOf(index: number): string {
  return colours[index % colours.length] ?? colours[0];
}

function yOf(percent: number, { low, high } = wholeRange): number {
  return round(size.top + plot.height * (1 - (percent - low) / (high - low)));
}

function text(x: number, y: number, content: string, attributes = ''): string {
  const escaped = content.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
  return `<text x="${round(x)}" y="${round(y)}" ${attributes}>${escaped}</text>`;
}

function round(value: number): number {
  return Math.round(value * 100) / 100;
}
