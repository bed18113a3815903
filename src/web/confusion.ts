/** Geometry of the picture of a matrix of confusion, and what it says of a cell. */

import type { JobReport } from '../spec/job-report.ts';
import { count, percent } from './format.ts';

export type ClassReport = Extract<JobReport, { readonly task: 'CLASSIFICATION' }>;

/** A cell: the nodes of class `known` that are said to be of class `predicted`. */
export interface Cell {
  readonly known: number;
  readonly predicted: number;
}

export interface Grid {
  /** Room for the names of classes, left of the cells and above them; 0: none are drawn. */
  readonly margin: number;
  /** Width and height of a cell. */
  readonly cell: number;
  readonly classes: number;
}

/** Beyond them names would lie on each other. */
const namedMax = 30;
const sideMax = 640;
const sideMaxOfMany = 840;
const marginMax = 130;
const characterWidth = 7;
/** A number of three digits has room in it. */
export const numberedCell = 30;

/**
 * All classes in so many pixels, the longest name with so many characters; cells have whole pixels
 * wherever they have one.
 */
export function gridOf(width: number, classes: number, longest: number): Grid {
  const isNamed = classes <= namedMax;
  const side = Math.min(width, isNamed ? sideMax : sideMaxOfMany);
  const wanted = 12 + characterWidth * longest;
  const margin = isNamed ? Math.min(marginMax, Math.floor(side * 0.3), wanted) : 0;
  const cell = Math.min(48, (side - margin) / Math.max(1, classes));
  return { margin, cell: cell >= 1 ? Math.floor(cell) : cell, classes };
}

/** The picture's of a report. */
export function gridOfReport(width: number, { classes }: ClassReport): Grid {
  const longest = Math.max(0, ...classes.map(({ name }) => name.length));
  return gridOf(width, classes.length, longest);
}

export function sideOf({ margin, cell, classes }: Grid): number {
  return margin + cell * classes;
}

/** Null beside the cells. */
export function cellAt({ margin, cell, classes }: Grid, x: number, y: number): Cell | null {
  const at = (pixel: number) => Math.floor((pixel - margin) / cell);
  const [predicted, known] = [at(x), at(y)];
  const isIn = (index: number) => index >= 0 && index < classes;
  return isIn(predicted) && isIn(known) ? { known, predicted } : null;
}

/** Where a key leads from a cell; null for a key that leads nowhere. */
export function cellAfter(key: string, { known, predicted }: Cell, classes: number): Cell | null {
  const last = classes - 1;
  const steps: Readonly<Record<string, Cell>> = {
    ArrowLeft: { known, predicted: predicted - 1 },
    ArrowRight: { known, predicted: predicted + 1 },
    ArrowUp: { known: known - 1, predicted },
    ArrowDown: { known: known + 1, predicted },
    PageUp: { known: known - 10, predicted },
    PageDown: { known: known + 10, predicted },
    Home: { known: 0, predicted: 0 },
    End: { known: last, predicted: last },
  };
  const next = steps[key];
  if (next === undefined) return null;
  const within = (index: number) => Math.max(0, Math.min(last, index));
  return { known: within(next.known), predicted: within(next.predicted) };
}

/** The share of a class's nodes in a cell, from 0 to 1. */
export function shareAt({ classes, confusion }: ClassReport, { known, predicted }: Cell): number {
  const nodes = classes[known]?.support ?? 0;
  return nodes === 0 ? 0 : (confusion[known]?.[predicted] ?? 0) / nodes;
}

/** `12 of 40 nodes of cat (30 %) are said to be dog`. */
export function cellText(report: ClassReport, cell: Cell): string {
  const { classes, confusion } = report;
  const nameOf = (at: number) => classes[at]?.name ?? String(at);
  const nodes = classes[cell.known]?.support ?? 0;
  const found = confusion[cell.known]?.[cell.predicted] ?? 0;
  const share = percent(shareAt(report, cell));
  const of = `${count(found)} of ${count(nodes)} nodes of ${nameOf(cell.known)} (${share})`;
  return `${of} are said to be ${nameOf(cell.predicted)}`;
}
