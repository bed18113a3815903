import { fromBinary } from '@bufbuild/protobuf';
import { anyUnpack } from '@bufbuild/protobuf/wkt';
import { status } from '@grpc/grpc-js';
import { describe, expect, it } from 'vitest';
import {
  BadRequestSchema,
  ErrorInfoSchema,
  PreconditionFailureSchema,
  ResourceInfoSchema,
  RetryInfoSchema,
} from '../../../src/api/gen/google/rpc/error_details_pb.ts';
import { StatusSchema } from '../../../src/api/gen/google/rpc/status_pb.ts';
import { reasonStatuses, statusOf } from '../../../src/api/grpc-status.ts';
import { errorReasons, GnndError, type GnndErrorDetails } from '../../../src/base/errors.ts';
import { createMemoryLog } from '../../support/api-fakes.ts';

/** The details of the trailer, by kind. */
function detailsOf(error: unknown) {
  const { log, lines } = createMemoryLog();
  const sent = statusOf(error, log);
  const [bytes] = sent.metadata.get('grpc-status-details-bin');
  if (!(bytes instanceof Buffer)) throw new Error('no details');
  const rich = fromBinary(StatusSchema, bytes);
  const unpack = <T>(found: (T | undefined)[]) => found.filter((detail) => detail !== undefined);
  const infos = unpack(rich.details.map((detail) => anyUnpack(detail, ErrorInfoSchema)));
  return {
    sent,
    bytes,
    rich,
    lines,
    infos,
    info: infos[0],
    fields: rich.details.map((detail) => anyUnpack(detail, BadRequestSchema)).find(Boolean),
    resource: rich.details.map((detail) => anyUnpack(detail, ResourceInfoSchema)).find(Boolean),
    precondition: rich.details
      .map((detail) => anyUnpack(detail, PreconditionFailureSchema))
      .find(Boolean),
    retry: rich.details.map((detail) => anyUnpack(detail, RetryInfoSchema)).find(Boolean),
  };
}

const make = (reason: (typeof errorReasons)[number], details: GnndErrorDetails = {}) =>
  new GnndError(reason, `because of ${reason}`, details);

describe('an expected error', () => {
  it.each(errorReasons)(
    '%s carries exactly one ErrorInfo and at most one detail more',
    (reason) => {
      const { sent, rich, infos } = detailsOf(make(reason));
      expect(infos).toHaveLength(1);
      expect(infos[0]).toMatchObject({ reason, domain: 'gnnd' });
      expect(rich.details.length).toBeLessThanOrEqual(2);
      expect(rich.code).toBe(sent.code);
      expect(rich.message).toBe(sent.details);
      expect(sent.code).toBe(reasonStatuses[reason].code);
      expect(sent.code).not.toBe(status.OK);
    },
  );

  it('of INVALID_ARGUMENT names every field', () => {
    const violations = [
      { path: 'spec.training.epochs', description: 'required' },
      { path: 'spec.model.dropout', description: '2: expected a finite number [0, 1)' },
    ];
    const { sent, fields } = detailsOf(make('SPEC_INVALID', { violations }));
    expect(sent.code).toBe(status.INVALID_ARGUMENT);
    expect(fields?.fieldViolations.map((violation) => violation.field)).toEqual([
      'spec.training.epochs',
      'spec.model.dropout',
    ]);
  });

  it('of NOT_FOUND and ALREADY_EXISTS names the resource', () => {
    const { sent, resource } = detailsOf(make('JOB_EXISTS', { resource: 'jobs/mine' }));
    expect(sent.code).toBe(status.ALREADY_EXISTS);
    expect(resource).toMatchObject({ resourceType: 'gnnd.v1.Job', resourceName: 'jobs/mine' });
  });

  it('of FAILED_PRECONDITION says which state is in the way', () => {
    const { precondition } = detailsOf(make('JOB_STATE_CONFLICT', { resource: 'jobs/mine' }));
    expect(precondition?.violations).toMatchObject([{ type: 'STATE', subject: 'jobs/mine' }]);
  });

  it('of UNAVAILABLE and RESOURCE_EXHAUSTED says when to try again', () => {
    for (const reason of ['DAEMON_STOPPING', 'JOB_QUEUE_FULL'] as const) {
      expect(detailsOf(make(reason)).retry?.retryDelay?.seconds).toBeGreaterThan(0n);
    }
  });

  it('keeps its metadata', () => {
    const { info } = detailsOf(make('REVISION_IN_FUTURE', { metadata: { currentRevision: '7' } }));
    expect(info?.metadata).toEqual({ currentRevision: '7' });
  });

  it('is cut to 20 violations and 4 KiB, and says so', () => {
    const violations = Array.from({ length: 500 }, (_, index) => ({
      path: `spec.sampling.fanouts[${index}]`,
      description: 'ä'.repeat(10_000),
    }));
    const { bytes, fields, info } = detailsOf(make('SPEC_INVALID', { violations }));
    expect(bytes.length).toBeLessThanOrEqual(4096);
    expect(fields?.fieldViolations.length).toBeGreaterThan(3);
    expect(fields?.fieldViolations.length).toBeLessThanOrEqual(20);
    expect(info?.metadata).toEqual({ truncated: 'true', violations: expect.any(String) });
  });

  it('has a message that a header can carry, whatever it quotes', () => {
    const { sent } = detailsOf(new GnndError('SPEC_INVALID', `${'x'.repeat(1020)}\u{1f600}y`));
    expect(sent.details.length).toBeLessThanOrEqual(1024);
    expect(() => encodeURI(sent.details)).not.toThrow();
  });
});

describe('an unexpected error', () => {
  it.each([
    new Error('SELECT secret FROM jobs'),
    new TypeError('secret is not a function'),
    'secret',
    { secret: true },
    undefined,
    new GnndError('INTERNAL', 'secret invariant', { cause: new Error('secret') }),
  ])('says an incident id and no word of %s', (error) => {
    const { sent, bytes, info, lines } = detailsOf(error);
    expect(sent.code).toBe(status.INTERNAL);
    expect(info?.reason).toBe('INTERNAL');
    expect(bytes.toString('latin1')).not.toContain('secret');
    expect(sent.details).not.toContain('secret');
    const incidentId = info?.metadata['incidentId'];
    expect(incidentId).toMatch(/^[0-9a-f-]{36}$/);
    expect(sent.details).toContain(incidentId);
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatchObject({ level: 'error', fields: { incidentId } });
  });
});
