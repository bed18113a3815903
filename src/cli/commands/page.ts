import type { Command } from 'commander';
import { HostService, PageLinkSchema } from '../../api/gen/gnnd/v1/host_service_pb.ts';
import { gnnctlExit } from '../../base/exit-codes.ts';
import { CliError } from '../session/exit.ts';
import type { Run } from '../session/run.ts';
import type { Session } from '../session/session.ts';
import { printable } from '../session/terminal.ts';
import { printOne } from '../show/output.ts';

/** `gnnctl page`. */
export function addPage(program: Command, run: Run): void {
  program
    .command('page')
    .description("print the address of the daemon's page, for a browser on its host")
    .action(run(showPage));
}

async function showPage(session: Session): Promise<number> {
  const link = await session.call(HostService.method.createPageLink, {});
  if (link.address === '') {
    const remedy = ['set page: on, or metrics_listen to an address of loopback (docs/page.md)'];
    throw new CliError(gnnctlExit.NOT_FOUND, 'the daemon serves no page', remedy);
  }
  printOne(session, {
    schema: PageLinkSchema,
    message: link,
    name: link.address,
    facts: () => [['Page', printable(link.address)]],
  });
  return gnnctlExit.OK;
}
