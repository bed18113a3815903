import { expect, test } from 'vitest';
import { timeLeft } from '../../../deploy/time-left.mjs';

const light = 'c++ -c a.cc -o CMakeFiles/gnnd_core.dir/a.cc.o';
const torch = 'c++ -c b.cc -o CMakeFiles/gnnd_train.dir/b.cc.o';
const built = (step: number, target: string) =>
  `[${step}/10] Building CXX object CMakeFiles/${target}.dir/a.cc.o\n`;

test('time left follows the work that is left, not the number of steps', () => {
  const heard = (target: string) => {
    const build = timeLeft([...Array(5).fill(light), ...Array(5).fill(torch)].join('\n'));
    for (let step = 1; step <= 5; step++) build.hear(built(step, target));
    return build.words(built(5, target).trim(), 100_000);
  };
  expect(heard('gnnd_core')).toBe('5 of 10 steps, about 5 min left');
  expect(heard('gnnd_train')).toBe('5 of 10 steps, about 40 s left');
});

test('lines may come in pieces, and what is no step is said as it is', () => {
  const build = timeLeft([light, light].join('\n'));
  for (const piece of ['[1/2] Build', 'ing a.cc.o', '\n[2/2] Li']) build.hear(piece);
  expect(build.words('[1/2] Building a.cc.o', 20_000)).toBe('1 of 2 steps, about 20 s left');
  expect(build.words('-- Configuring done', 20_000)).toBe('-- Configuring done');
});
