import { test } from 'vitest';
import { unitTests } from '../support/python-package.ts';

/** The Python package, built from its source and installed into a clean environment. */

const unittest = unitTests();

test('does without a daemon what needs none', (context) =>
  unittest(context, [
    'test_alone',
    'test_history',
    'test_identity',
    'test_mistakes',
    'test_report',
    'test_values',
  ]));

test('imports, submits, watches, predicts and takes models away', (context) =>
  unittest(context, ['test_daemon']));

test('learns links, and has their metrics by name', (context) =>
  unittest(context, ['test_links'], { withLibraries: true }));

test('lends batches to a loop of its own, the same for any crew', (context) =>
  unittest(context, ['test_loader', 'test_link_loader'], { withLibraries: true }));
