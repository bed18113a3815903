import { expect, test } from 'vitest';
import { completionMessage } from '../../../src/jobs/completion.ts';
import { someSpec } from '../store/job-values.ts';

function message(
  epochs: number,
  patienceEpochs: number,
  minDelta = 0,
  metric = 'accuracy',
): string {
  const training = { ...someSpec.training, epochs: 200, earlyStop: { patienceEpochs, minDelta } };
  return completionMessage(training, {
    epochs,
    bestEpoch: 11,
    bestValMetrics: [{ name: metric, value: 0.5 }],
  });
}

test('a job that trained all its epochs has nothing to add', () => {
  expect(message(200, 0)).toBe('');
  expect(message(200, 10)).toBe('');
});

test('a job that stopped early says when, why, and which epoch was best', () => {
  expect(message(22, 10)).toBe(
    'stopped early after epoch 22: no better validation accuracy for 10 epochs; best epoch 12',
  );
  expect(message(13, 1, 0.005)).toBe(
    'stopped early after epoch 13: no better validation accuracy by more than 0.005 ' +
      'for 1 epoch; best epoch 12',
  );
  expect(message(22, 10, 0, 'micro_f1')).toContain('no better validation micro F1 for 10 epochs');
});
