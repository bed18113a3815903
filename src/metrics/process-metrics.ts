import { type IntervalHistogram, monitorEventLoopDelay } from 'node:perf_hooks';
import { collectDefaultMetrics, Registry } from 'prom-client';
import type { ExposedFamily } from './exposition.ts';
import type { Sample } from './series.ts';

/** `process_*` and `nodejs_*`, as prom-client measures them. */
export class ProcessMetrics {
  readonly #registry = new Registry();

  constructor() {
    collectDefaultMetrics({ register: this.#registry });
    // Gauges whose names end in _total: every linter of metrics refuses them.
    for (const what of ['handles', 'requests', 'resources']) {
      this.#registry.removeSingleMetric(`nodejs_active_${what}_total`);
    }
  }

  async families(): Promise<readonly ExposedFamily[]> {
    const metrics = await this.#registry.getMetricsAsJSON();
    return metrics.map(({ name, help, type, values }) => ({
      name,
      help,
      type: String(type),
      samples: values.map((value): Sample => {
        const fullName = 'metricName' in value ? String(value.metricName ?? name) : name;
        return {
          suffix: fullName.slice(name.length),
          labels: Object.entries(value.labels).map(([label, text]) => [label, String(text)]),
          value: value.value,
        };
      }),
    }));
  }
}

const resolutionMs = 10;
const nsPerSecond = 1e9;

/** How late the event loop is. Quantiles start anew with each reading, sum and count never do. */
export class EventLoopDelay {
  readonly #histogram: IntervalHistogram = monitorEventLoopDelay({ resolution: resolutionMs });
  #sum = 0;
  #count = 0;

  constructor() {
    this.#histogram.enable();
  }

  read(): readonly Sample[] {
    const histogram = this.#histogram;
    const quantiles: readonly (readonly [string, number])[] = [
      ['0.5', histogram.percentile(50)],
      ['0.99', histogram.percentile(99)],
      ['1', histogram.max],
    ];
    // Empty right after a reading: its mean is then not a number.
    if (histogram.count > 0) {
      this.#sum += delaySeconds(histogram.mean) * histogram.count;
      this.#count += histogram.count;
    }
    const samples = quantiles.map(
      ([quantile, ns]): Sample => ({
        suffix: '',
        labels: [['quantile', quantile]],
        value: delaySeconds(ns),
      }),
    );
    histogram.reset();
    return [
      ...samples,
      { suffix: '_sum', labels: [], value: this.#sum },
      { suffix: '_count', labels: [], value: this.#count },
    ];
  }

  close(): void {
    this.#histogram.disable();
  }
}

/** The monitor reports the whole time between two of its timers, their interval included. */
function delaySeconds(intervalNs: number): number {
  return Math.max(0, intervalNs / nsPerSecond - resolutionMs / 1000);
}
