import { Command, Option } from 'commander';
import { gnnctlExit } from '../base/exit-codes.ts';
import { packageVersion } from '../base/package-version.ts';
import { addCacheCommands } from './commands/cache.ts';
import { addCheckpointCommands } from './commands/checkpoint.ts';
import { addCompletion } from './commands/completion.ts';
import { addDatasetCommands } from './commands/dataset.ts';
import { addDoctor } from './commands/doctor.ts';
import { addGc } from './commands/gc.ts';
import { addHistoryCommands } from './commands/history.ts';
import { addHostCommands } from './commands/host.ts';
import { addInit } from './commands/init.ts';
import { addJobCommands } from './commands/job.ts';
import { addPage } from './commands/page.ts';
import { addPlacementCommands } from './commands/placement.ts';
import { addTop } from './commands/top.ts';
import { addVersion } from './commands/version.ts';
import { explainUsage } from './read/usage.ts';
import { failureOf } from './session/failure.ts';
import type { CliIo } from './session/io.ts';
import type { Run } from './session/run.ts';
import { colorModes, formats, type GlobalFlags, Session } from './session/session.ts';
import { createStyle, harmless } from './session/terminal.ts';

/** Runs gnnctl with `args`, those after its own name; resolves with the exit code. */
export async function runCli(args: readonly string[], io: CliIo): Promise<number> {
  let session: Session | null = null;
  let exitCode: number = gnnctlExit.OK;
  const program = new Command('gnnctl');
  const run: Run =
    (work) =>
    async (...given) => {
      session = new Session(io, program.opts<GlobalFlags>());
      exitCode = await work(session, ...given);
    };
  // Before the commands are added: each takes these from its parent when it is made.
  program
    .showHelpAfterError('(--help shows how)')
    .exitOverride()
    .configureOutput({
      writeOut: (text) => io.stdout.write(harmless(text)),
      writeErr: (text) => io.stderr.write(harmless(text)),
      getOutHasColors: () => false,
      getErrHasColors: () => false,
    });
  explainUsage(addCommands(program, run));
  try {
    await program.parseAsync(args, { from: 'user' });
    return exitCode;
  } catch (error) {
    return report(error, session, io);
  } finally {
    closeSession(session);
  }
}

/** All that gnnctl knows; manual pages are made of it, too. */
export function addCommands(program: Command, run: Run): Command {
  globalOptions(program).description('Train graph neural networks with gnnd.');
  addJobCommands(program, run);
  addDatasetCommands(program, run);
  addCacheCommands(program, run);
  addHistoryCommands(program, run);
  addPlacementCommands(program, run);
  addCheckpointCommands(program, run);
  addHostCommands(program, run);
  addTop(program, run);
  addPage(program, run);
  addInit(program, run);
  addGc(program, run);
  addDoctor(program, run);
  addVersion(program, run);
  addCompletion(program, run);
  return program;
}

/** A function of its own: the assignment in `run` is not seen by the compiler's narrowing. */
function closeSession(session: Session | null): void {
  session?.close();
}

function report(error: unknown, session: Session | null, io: CliIo): number {
  const { exitCode, message, details } = failureOf(error, session);
  if (message === '') return exitCode;
  const style = session?.errorStyle ?? createStyle(false);
  const isDetached = exitCode === gnnctlExit.INTERRUPTED;
  const head = isDetached ? message : `${style.red('error:')} ${message}`;
  io.stderr.write(harmless([head, ...details.map((line) => `  ${line}`), ''].join('\n')));
  return exitCode;
}

function globalOptions(program: Command): Command {
  return program
    .version(packageVersion(), '-V, --version', 'print the version of gnnctl')
    .option('--address <address>', 'of the daemon: unix:PATH or HOST:PORT (GNND_ADDRESS)')
    .option('--tls', 'to HOST:PORT, with what this host trusts; implied by the next two')
    .option('--tls-ca <file>', "that signed the daemon's certificate, PEM (GNND_TLS_CA)")
    .option('--tls-cert <file>', 'of yours, PEM, with --tls-key (GNND_TLS_CERT, GNND_TLS_KEY)')
    .option('--tls-key <file>', 'its key')
    .option('--token-file <file>', 'says who you are (GNND_TOKEN, GNND_TOKEN_FILE)')
    .option('--timeout <duration>', 'for a call 10s; for a wait none')
    .addOption(
      new Option(
        '-o, --output <format>',
        'default: table on a terminal, plain (tab-separated) elsewhere',
      ).choices(formats),
    )
    .option('--no-headers', 'tables without their first line')
    .addOption(new Option('--color <when>').choices(colorModes).default('auto'))
    .option('-q, --quiet', 'nothing but data and errors')
    .option('--request-id <uuid>', 'makes repeating a change safe; default: a new one');
}
