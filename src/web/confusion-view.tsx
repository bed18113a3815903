import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { mixedUpOf } from '../spec/job-report.ts';
import {
  type Cell,
  type ClassReport,
  cellAfter,
  cellAt,
  cellText,
  type Grid,
  gridOfReport,
  numberedCell,
  shareAt,
  sideOf,
} from './confusion.ts';
import { count } from './format.ts';

const mixedUpShown = 10;

/** Which classes are taken for which: a picture, the cell under the cursor in words, the worst. */
export function ConfusionView({ report }: { readonly report: ClassReport }) {
  const mixedUp = useMemo(() => mixedUpOf(report.confusion, mixedUpShown), [report]);
  const [worst] = mixedUp;
  const [at, setAt] = useState<Cell | null>(null);
  const cell = at ?? worst ?? { known: 0, predicted: 0 };
  const { classes } = report;
  const nameOf = (index: number) => classes[index]?.name ?? '';
  return (
    <figure class="confusion">
      <figcaption>Who is taken for whom</figcaption>
      <ul class="legend" aria-label="Colours">
        <li>
          <i class="key block" data-color="--val-accuracy" />
          right
        </li>
        <li>
          <i class="key block" data-color="--loss" />
          wrong; the stronger, the larger its share of the row's nodes
        </li>
      </ul>
      <Matrix report={report} cell={cell} isAsked={at !== null} onCell={setAt} />
      <p class="reading">{cellText(report, cell)}</p>
      {mixedUp.length > 0 && (
        <table>
          <thead>
            <tr>
              <th scope="col">Most mixed up</th>
              <th scope="col">said to be</th>
              <th scope="col">nodes</th>
            </tr>
          </thead>
          <tbody>
            {mixedUp.map(({ known, predicted, count: nodes }) => (
              <tr key={`${known} ${predicted}`}>
                <th scope="row">{nameOf(known)}</th>
                <td>{nameOf(predicted)}</td>
                <td>{count(nodes)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </figure>
  );
}

interface MatrixProps {
  readonly report: ClassReport;
  readonly cell: Cell;
  /** Whether the cell was pointed at: only then it is marked. */
  readonly isAsked: boolean;
  readonly onCell: (cell: Cell | null) => void;
}

function Matrix({ report, cell, isAsked, onCell }: MatrixProps) {
  const place = useRef<HTMLCanvasElement>(null);
  const { classes } = report;
  const last = classes.length ** 2 - 1;
  useEffect(() => {
    const canvas = place.current;
    if (canvas === null) return;
    const draw = () => drawMatrix(canvas, report, isAsked ? cell : null);
    draw();
    const resizing = new ResizeObserver(draw);
    // Its own size follows from what is drawn.
    resizing.observe(canvas.parentElement ?? canvas);
    const scheme = matchMedia('(prefers-color-scheme: dark)');
    scheme.addEventListener('change', draw);
    return () => {
      scheme.removeEventListener('change', draw);
      resizing.disconnect();
    };
  }, [report, isAsked, cell.known, cell.predicted]);
  return (
    <div
      class="matrix"
      role="slider"
      tabIndex={0}
      aria-label="Cell of the matrix: rows are classes of nodes, columns what is said of them"
      aria-valuemin={0}
      aria-valuemax={last}
      aria-valuenow={cell.known * classes.length + cell.predicted}
      aria-valuetext={cellText(report, cell)}
      onKeyDown={(event) => {
        const next = cellAfter(event.key, cell, classes.length);
        if (next === null) return;
        event.preventDefault();
        onCell(next);
      }}
      onPointerMove={(event) => {
        const { left, top, width } = event.currentTarget.getBoundingClientRect();
        const grid = gridOfReport(width, report);
        onCell(cellAt(grid, event.clientX - left, event.clientY - top));
      }}
      onPointerLeave={() => onCell(null)}
    >
      <canvas ref={place} />
    </div>
  );
}

function drawMatrix(canvas: HTMLCanvasElement, report: ClassReport, marked: Cell | null): void {
  const context = canvas.getContext('2d');
  const width = canvas.parentElement?.clientWidth ?? 0;
  if (context === null || width === 0) return;
  const grid = gridOfReport(width, report);
  const side = sideOf(grid);
  const scale = devicePixelRatio;
  canvas.width = Math.round(side * scale);
  canvas.height = Math.round(side * scale);
  canvas.style.width = `${side}px`;
  canvas.style.height = `${side}px`;
  context.scale(scale, scale);
  const style = getComputedStyle(canvas);
  const color = (name: string) => style.getPropertyValue(name).trim();
  const font = `12px ${style.fontFamily}`;
  drawCells(context, grid, report, { right: color('--val-accuracy'), wrong: color('--loss') });
  context.fillStyle = color('--ink');
  context.font = font;
  if (grid.cell >= numberedCell) drawNumbers(context, grid, report);
  context.fillStyle = color('--muted');
  if (grid.margin > 0) drawNames(context, grid, report);
  context.strokeStyle = color('--line');
  context.strokeRect(grid.margin, grid.margin, side - grid.margin, side - grid.margin);
  if (marked === null) return;
  context.strokeStyle = color('--ink');
  const size = Math.max(3, grid.cell);
  const middle = (index: number) => grid.margin + (index + 0.5) * grid.cell - size / 2;
  context.strokeRect(middle(marked.predicted), middle(marked.known), size, size);
}

function drawCells(
  context: CanvasRenderingContext2D,
  { margin, cell }: Grid,
  report: ClassReport,
  colors: { readonly right: string; readonly wrong: string },
): void {
  report.confusion.forEach((row, known) => {
    row.forEach((nodes, predicted) => {
      if (nodes === 0) return;
      // The root shows small shares, too.
      context.globalAlpha = 0.12 + 0.88 * Math.sqrt(shareAt(report, { known, predicted }));
      context.fillStyle = known === predicted ? colors.right : colors.wrong;
      // Cells of less than a pixel would fade.
      const size = Math.max(1, cell);
      context.fillRect(margin + predicted * cell, margin + known * cell, size, size);
    });
  });
  context.globalAlpha = 1;
}

function drawNumbers(
  context: CanvasRenderingContext2D,
  { margin, cell }: Grid,
  { confusion }: ClassReport,
): void {
  context.textAlign = 'center';
  context.textBaseline = 'middle';
  confusion.forEach((row, known) => {
    row.forEach((nodes, predicted) => {
      const text = count(nodes);
      if (nodes === 0 || context.measureText(text).width > cell - 2) return;
      const middle = (index: number) => margin + (index + 0.5) * cell;
      context.fillText(text, middle(predicted), middle(known));
    });
  });
}

/** Names of rows at the left, and of columns above, from the bottom up. */
function drawNames(
  context: CanvasRenderingContext2D,
  { margin, cell }: Grid,
  { classes }: ClassReport,
): void {
  context.textBaseline = 'middle';
  classes.forEach(({ name }, index) => {
    const text = fitting(context, name, margin - 8);
    const middle = margin + (index + 0.5) * cell;
    context.textAlign = 'right';
    context.fillText(text, margin - 6, middle);
    context.save();
    context.translate(middle, margin - 6);
    context.rotate(-Math.PI / 2);
    context.textAlign = 'left';
    context.fillText(text, 0, 0);
    context.restore();
  });
}

function fitting(context: CanvasRenderingContext2D, name: string, width: number): string {
  if (context.measureText(name).width <= width) return name;
  let length = name.length;
  while (length > 1 && context.measureText(`${name.slice(0, length)}…`).width > width) length -= 1;
  return `${name.slice(0, length)}…`;
}
