import { expect, test } from 'vitest';
import { createLine } from '../../../src/base/line.ts';
import { settled } from '../../support/api-fakes.ts';

const never = new AbortController().signal;

test('one is in at a time, in the order of arrival', async () => {
  const line = createLine();
  expect(line.isBusy()).toBe(false);
  const order: string[] = [];
  const leave = await line.enter(never);
  expect(line.isBusy()).toBe(true);
  const enter = async (name: string) => {
    const out = await line.enter(never);
    order.push(name);
    return out;
  };
  const second = enter('second');
  const third = enter('third');
  await settled();
  expect(order).toEqual([]);
  leave();
  leave();
  const leaveSecond = await second;
  await settled();
  expect(order).toEqual(['second']);
  leaveSecond();
  (await third)();
  expect(order).toEqual(['second', 'third']);
  expect(line.isBusy()).toBe(false);
});

test('whoever gives up waiting lets nobody in early and holds nobody up', async () => {
  const line = createLine();
  const leave = await line.enter(never);
  const impatient = new AbortController();
  const second = line.enter(impatient.signal);
  let isThirdIn = false;
  const third = line.enter(never).then((out) => {
    isThirdIn = true;
    return out;
  });
  const reason = new Error('gone');
  impatient.abort(reason);
  await expect(second).rejects.toBe(reason);
  await settled();
  expect(isThirdIn).toBe(false);
  leave();
  (await third)();
  expect(line.isBusy()).toBe(false);
  await expect(line.enter(impatient.signal)).rejects.toBe(reason);
  expect(line.isBusy()).toBe(false);
});
