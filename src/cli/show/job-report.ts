import { formatCount } from '../../spec/counted.ts';
import { type ClassScore, type JobReport, meansOf, mixedUpOf } from '../../spec/job-report.ts';
import type { Session } from '../session/session.ts';
import { printable } from '../session/terminal.ts';
import { type Column, tableOf } from './output.ts';

/** Wider matrices are for programs; people are told what is mixed up most. */
const matrixColumnsMax = 12;
const mixedUpShown = 10;

export function reportText(session: Session, report: JobReport): string {
  switch (report.task) {
    case 'CLASSIFICATION': {
      const scores = scoreTable(session, 'CLASS', report.classes);
      const accuracy = `accuracy ${report.accuracy.toFixed(4)}`;
      return [scores, accuracy, confusionText(session, report)].join('\n\n');
    }
    case 'MULTI_LABEL':
      return scoreTable(session, 'LABEL', report.labels);
    case 'REGRESSION':
      return tableOf(
        session,
        [
          { title: 'TARGET', shown: ({ name }) => printable(name) },
          { title: 'MAE', align: 'right', shown: ({ mae }) => mae.toPrecision(4) },
          { title: 'RMSE', align: 'right', shown: ({ rmse }) => rmse.toPrecision(4) },
          { title: 'NODES', align: 'right', shown: ({ support }) => formatCount(support) },
        ],
        report.targets,
      );
  }
}

function scoreTable(session: Session, title: string, scores: readonly ClassScore[]): string {
  const rows = [...scores, ...meansOf(scores)];
  const share = (name: string, read: (score: ClassScore) => number): Column<ClassScore> => ({
    ...{ title: name, align: 'right' },
    shown: (score) => read(score).toFixed(4),
  });
  return tableOf(
    session,
    [
      { title, shown: ({ name }) => printable(name) },
      share('PRECISION', ({ precision }) => precision),
      share('RECALL', ({ recall }) => recall),
      share('F1', ({ f1 }) => f1),
      { title: 'NODES', align: 'right', shown: (score) => formatCount(score.support) },
    ],
    rows,
  );
}

function confusionText(
  session: Session,
  { classes, confusion }: Extract<JobReport, { task: 'CLASSIFICATION' }>,
): string {
  if (classes.length <= matrixColumnsMax) {
    const columns: Column<number>[] = [
      { title: 'CLASS \\ PREDICTED', shown: (row) => printable(classes[row]?.name ?? '') },
      ...classes.map(
        ({ name }, at): Column<number> => ({
          title: printable(name),
          align: 'right',
          shown: (row) => formatCount(confusion[row]?.[at] ?? 0),
        }),
      ),
    ];
    return tableOf(session, columns, [...classes.keys()]);
  }
  const nameOf = (at: number) => printable(classes[at]?.name ?? '');
  return tableOf(
    session,
    [
      { title: 'MOST MIXED UP', shown: ({ known }) => nameOf(known) },
      { title: 'PREDICTED', shown: ({ predicted }) => nameOf(predicted) },
      { title: 'NODES', align: 'right', shown: ({ count }) => formatCount(count) },
    ],
    mixedUpOf(confusion, mixedUpShown),
  );
}
