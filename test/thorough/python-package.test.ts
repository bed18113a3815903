import { test } from 'vitest';
import { unitTests } from '../support/python-package.ts';

/** The Python package beside engines, and libraries whose graphs it takes and modules it gives. */

const unittest = unitTests();

test('runs a job as an engine starts it, and hands jobs to engines', (context) =>
  unittest(context, ['test_fleet']));

test('starts a daemon that ends with its process', (context) => unittest(context, ['test_local']));

test('takes a graph of other libraries for what it is', (context) =>
  unittest(context, ['test_extras.Imports'], { withLibraries: true }));

test('takes graphs as people have them, and names what is wrong with them', (context) =>
  unittest(context, ['test_found'], { withLibraries: true }));

test('takes graphs of several types, learns from them, and gives their modules', (context) =>
  unittest(context, ['test_typed'], { withLibraries: true }));

test('has one digest of a random graph, whichever way it comes in', (context) =>
  unittest(context, ['test_ways'], { withLibraries: true }));

test('gives torch_geometric a module that computes the logits that gnnd predicts', (context) =>
  unittest(context, ['test_extras.Modules'], { withLibraries: true }));

test('hands out modules that compute its logits on any graph: loops, repeats, one way', (context) =>
  unittest(context, ['test_exports'], { withLibraries: true }));

test('has each model in PyTorch and as ONNX, computing what gnnd predicts', (context) =>
  unittest(context, ['test_torch'], { withLibraries: true }));

test('does what its page and its notebook say', (context) =>
  unittest(context, ['test_pages'], { withLibraries: true }));

test('lends batches that are samples of the graph, by every sampler', (context) =>
  unittest(context, ['test_loader_batches', 'test_loader_memory'], { withLibraries: true }));

test('lends batches of several types as HeteroData, the same for any crew', (context) =>
  unittest(context, ['test_typed_loader'], { withLibraries: true }));

test('lends the same batches in every form', (context) =>
  unittest(context, ['test_loader_forms', 'test_loader_dgl'], { withLibraries: true }));
