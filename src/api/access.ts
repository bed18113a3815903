import { GnndError, messageOf } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import { type Role, roles, type Tokens } from '../config/tokens.ts';

/** Who calls, and who may call what. */

/**
 * How a call came in. LOCAL: through a socket whose mode says who may, or a port of this host that
 * was opened knowingly; NETWORK: encrypted, from anywhere.
 */
export type Door = 'LOCAL' | 'NETWORK';

export interface Caller {
  /** Name of the token; `local` without one. */
  readonly name: string;
  readonly role: Role;
}

export interface Access {
  /**
   * Whoever comes through a LOCAL door needs no token, and may then do everything; with one they
   * are who it says. Throws UNAUTHENTICATED.
   */
  identify(call: Call): Caller;
  /** Throws ACCESS_DENIED. */
  authorize(caller: Caller, call: Call): void;
}

export interface Call {
  readonly door: Door;
  /** Value of the metadata key `authorization`. */
  readonly authorization: string | undefined;
  /** For example `gnnd.v1.JobService`. */
  readonly service: string;
  readonly method: string;
}

/**
 * Least roles of our own methods. VIEWER: changes nothing, or makes only what its caller asked to
 * see. SUBMITTER: uses the host's devices and disks, or ends such a use. ADMIN: takes from others.
 */
export const roleByMethod: Readonly<Record<string, Role>> = {
  ...of('VIEWER', ['GetJob', 'ListJobs', 'ListEpochs', 'WatchJob', 'StreamLogs', 'GetJobPlan']),
  ...of('VIEWER', ['GetJobTimeline', 'CreatePageLink']),
  ...of('VIEWER', ['ListCheckpoints', 'ExportCheckpoint', 'ExportPredictions']),
  ...of('VIEWER', ['GetDataset', 'ListDatasets', 'PlanPropagation', 'ListPropagations']),
  ...of('VIEWER', ['GetOperation', 'WaitOperation', 'GetHost', 'ListDevices']),
  ...of('SUBMITTER', ['CreateJob', 'CancelJob', 'DeleteJob', 'CancelOperation']),
  ...of('SUBMITTER', ['SuspendJob', 'ResumeJob', 'RetryJob']),
  ...of('SUBMITTER', ['ImportDataset', 'ValidateDataset', 'PropagateDataset']),
  ...of('SUBMITTER', ['ReportCache', 'SimulatePlacement']),
  ...of('ADMIN', ['DeleteDataset', 'DeletePropagation', 'CollectGarbage']),
  ...of('ADMIN', ['DrainDevice', 'UndrainDevice']),
};

function of(role: Role, methods: readonly string[]): Record<string, Role> {
  return Object.fromEntries(methods.map((method) => [method, role]));
}

/** Null: everybody may, as balancers ask for health. What the table lacks is for an ADMIN. */
export function roleFor(service: string, method: string): Role | null {
  if (service === 'grpc.health.v1.Health') return null;
  if (!service.startsWith('gnnd.')) return 'VIEWER';
  return roleByMethod[method] ?? 'ADMIN';
}

const local: Caller = { name: 'local', role: 'ADMIN' };
const nobody: Caller = { name: '', role: 'VIEWER' };

export function createAccess(tokens: Pick<Tokens, 'find'>, log: Log): Access {
  /** A file that cannot be read lets nobody in, and the log says why. */
  const found = (text: string) => {
    try {
      return tokens.find(text);
    } catch (error) {
      log.error('api.tokens_unreadable', { error: messageOf(error) });
      return null;
    }
  };
  return {
    identify({ door, authorization, service, method }) {
      if (roleFor(service, method) === null) return nobody;
      if (authorization === undefined) {
        if (door === 'LOCAL') return local;
        throw unauthenticated('this address asks for a token');
      }
      const [, text] = /^Bearer +(\S+)$/i.exec(authorization) ?? [];
      if (text === undefined) throw unauthenticated('authorization is not "Bearer TOKEN"');
      const token = found(text);
      if (token === null) throw unauthenticated('nobody has this token, or no longer');
      return { name: token.name, role: token.role };
    },
    authorize({ name, role }, { service, method }) {
      const needed = roleFor(service, method);
      if (needed === null || roles.indexOf(role) >= roles.indexOf(needed)) return;
      throw new GnndError(
        'ACCESS_DENIED',
        `${method} needs the role ${needed}; ${name} has the role ${role}`,
        { metadata: { caller: name, role, needed } },
      );
    },
  };
}

/** Throws ACCESS_DENIED to whoever did not create the job, but to an ADMIN. */
export function requireOwner(
  { name, role }: Caller,
  { id, createdBy }: { readonly id: string; readonly createdBy: string },
): void {
  if (role === 'ADMIN' || name === createdBy) return;
  const whose = createdBy === '' ? 'nobody is known to have created' : `${createdBy} created`;
  throw new GnndError('ACCESS_DENIED', `${whose} ${id}; ${name} changes jobs of its own`, {
    resource: `jobs/${id}`,
    metadata: { caller: name, role, needed: 'ADMIN' },
  });
}

function unauthenticated(why: string): GnndError {
  const remedy =
    'gnnctl takes one from GNND_TOKEN or --token-file; `gnnd token create NAME --role SUBMITTER` ' +
    "makes one on the daemon's host";
  return new GnndError('UNAUTHENTICATED', `${why}; ${remedy}`);
}

/** What a change is about, as the request names it. */
export function targetOf(request: unknown): string {
  const fields = Object(request) as Readonly<Record<string, unknown>>;
  const named = ['name', 'jobId', 'datasetId', 'dataset', 'job'].map((key) => fields[key]);
  return String(named.find((value) => typeof value === 'string' && value !== '') ?? '');
}
