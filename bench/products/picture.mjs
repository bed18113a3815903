#!/usr/bin/env node
// Draws where the time of one products-size epoch and its evaluations goes: a bar for each run of
// run.mjs.
//
//   node bench/products/picture.mjs OUT.svg LABEL=FILE.jsonl ...
//
// FILE.jsonl is what run.mjs left in build/bench/products.jsonl. Busy seconds of all executors.
import { readFileSync, writeFileSync } from 'node:fs';

const stages = [
  ['S', 'sampling', '#4c78a8'],
  ['E', 'extraction', '#f58518'],
  ['T', 'training', '#54a24b'],
  ['V', 'evaluation', '#b279a2'],
];
const [out, ...runs] = process.argv.slice(2);
if (out === undefined || runs.length === 0) {
  process.stderr.write('usage: picture.mjs OUT.svg LABEL=FILE.jsonl ...\n');
  process.exit(64);
}

const bars = runs.map((run) => {
  const at = run.lastIndexOf('=');
  const lines = readFileSync(run.slice(at + 1), 'utf8')
    .trim()
    .split('\n');
  const job = lines.map((line) => JSON.parse(line)).find(({ name }) => name === 'default');
  return { label: run.slice(0, at), stages: job.stages };
});
const total = (bar) => stages.reduce((sum, [stage]) => sum + (bar.stages[stage] ?? 0), 0);
const [width, left, barHeight, step] = [720, 150, 26, 46];
const scale = (width - left - 70) / Math.max(...bars.map(total));

const parts = bars.flatMap((bar, row) => {
  const y = 40 + row * step;
  let x = left;
  const boxes = stages.map(([stage, name, colour]) => {
    const seconds = bar.stages[stage] ?? 0;
    const wide = seconds * scale;
    const text =
      wide < 28
        ? ''
        : `<text x="${(x + wide / 2).toFixed(1)}" y="${y + 17}" text-anchor="middle" fill="#fff">` +
          `${seconds.toFixed(0)}</text>`;
    const box =
      `<rect x="${x.toFixed(1)}" y="${y}" width="${wide.toFixed(1)}" height="${barHeight}" ` +
      `fill="${colour}"><title>${name}: ${seconds.toFixed(1)} s</title></rect>${text}`;
    x += wide;
    return box;
  });
  return [
    `<text x="${left - 8}" y="${y + 17}" text-anchor="end">${bar.label}</text>`,
    ...boxes,
    `<text x="${(x + 6).toFixed(1)}" y="${y + 17}">${total(bar).toFixed(0)} s</text>`,
  ];
});
const legend = stages.map(
  ([, name, colour], i) =>
    `<rect x="${left + i * 120}" y="10" width="12" height="12" fill="${colour}"/>` +
    `<text x="${left + 17 + i * 120}" y="21">${name}</text>`,
);
const height = 40 + bars.length * step;
writeFileSync(
  out,
  `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" ` +
    `height="${height}" font-family="sans-serif" font-size="12">\n` +
    '<title>Busy seconds of all executors, one epoch and its evaluations</title>\n' +
    `<rect width="${width}" height="${height}" fill="#fff"/>\n${[...legend, ...parts].join('\n')}\n</svg>\n`,
);
