import { useEffect, useState } from 'preact/hooks';
import { JobService } from '../api/gen/gnnd/v1/job_service_pb.ts';
import { stream } from './api.ts';
import { browserTime } from './browser-time.ts';
import { Painter } from './painter.ts';
import { Trouble } from './trouble.tsx';
import { whileSeen } from './use-feed.ts';

/** Lines that are kept, of all logs together. */
const linesMax = 500;
const tailLines = 100;

interface Line {
  readonly log: string;
  readonly text: string;
  readonly number: number;
}

/** What executors logged, followed while it is open: a closed one holds no connection. */
export function LogsView({ name }: { readonly name: string }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <details class="logs" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>Logs</summary>
      {isOpen && <Lines name={name} />}
    </details>
  );
}

function Lines({ name }: { readonly name: string }) {
  const [lines, setLines] = useState<readonly Line[]>([]);
  const [only, setOnly] = useState('');
  const [error, setError] = useState<unknown>(null);
  useEffect(() => {
    let kept: Line[] = [];
    let number = 0;
    const painter = new Painter(() => setLines(kept), browserTime);
    const read = async (signal: AbortSignal) => {
      kept = [];
      try {
        const request = { name, tailLines, follow: true };
        for await (const chunk of stream(JobService.method.streamLogs, request, signal)) {
          const fresh = chunk.lines.slice(-linesMax).map((text) => {
            number += 1;
            return { log: chunk.log, text, number };
          });
          kept = [...kept, ...fresh].slice(-linesMax);
          painter.ask();
        }
      } catch (problem) {
        if (!signal.aborted) setError(problem);
      }
    };
    const stop = whileSeen((signal) => void read(signal));
    return () => {
      stop();
      painter.stop();
    };
  }, [name]);
  const logs = [...new Set(lines.map(({ log }) => log))].sort();
  const shown = lines.filter(({ log }) => only === '' || log === only);
  return (
    <>
      <Trouble error={error} />
      <label>
        Of{' '}
        <select value={only} onChange={(event) => setOnly(event.currentTarget.value)}>
          <option value="">all logs</option>
          {logs.map((log) => (
            <option key={log}>{log}</option>
          ))}
        </select>
      </label>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it is scrolled with arrow keys. */}
      <pre tabIndex={0} role="log" aria-label="Log lines">
        {shown.map(({ log, text, number }) => (
          <span key={number}>
            {only === '' && <b>{log} </b>}
            {text}
            {'\n'}
          </span>
        ))}
      </pre>
    </>
  );
}
