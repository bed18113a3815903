import type { MetricsFormat } from './metrics-types.ts';
import type { Sample } from './series.ts';

/** A family ready to be written down. */
export interface ExposedFamily {
  readonly name: string;
  readonly help: string;
  readonly type: string;
  readonly samples: readonly Sample[];
}

export const contentTypes: Readonly<Record<MetricsFormat, string>> = {
  PROMETHEUS: 'text/plain; version=0.0.4; charset=utf-8',
  OPENMETRICS: 'application/openmetrics-text; version=1.0.0; charset=utf-8',
};

/** Writes families in one of the two text formats, in the order given. */
export function writeExposition(families: readonly ExposedFamily[], format: MetricsFormat): string {
  const lines: string[] = [];
  for (const family of families) {
    // In OpenMetrics a counter's family has no suffix; only its sample ends in _total.
    const familyName =
      format === 'OPENMETRICS' && family.type === 'counter'
        ? family.name.replace(/_total$/, '')
        : family.name;
    lines.push(`# HELP ${familyName} ${escapeHelp(family.help)}`);
    lines.push(`# TYPE ${familyName} ${family.type}`);
    for (const sample of family.samples) lines.push(sampleLine(family.name, sample));
  }
  if (format === 'OPENMETRICS') lines.push('# EOF');
  return `${lines.join('\n')}\n`;
}

function sampleLine(name: string, sample: Sample): string {
  const labels = sample.labels.map(([label, value]) => `${label}="${escapeLabel(value)}"`);
  const braces = labels.length === 0 ? '' : `{${labels.join(',')}}`;
  return `${name}${sample.suffix}${braces} ${numberText(sample.value)}`;
}

function numberText(value: number): string {
  if (value === Number.POSITIVE_INFINITY) return '+Inf';
  if (value === Number.NEGATIVE_INFINITY) return '-Inf';
  return String(value);
}

function escapeHelp(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n');
}

function escapeLabel(text: string): string {
  return escapeHelp(text).replaceAll('"', '\\"');
}
