import { render } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { type Host, HostService } from '../api/gen/gnnd/v1/host_service_pb.ts';
import { ApiError, call, hasToken, storeToken } from './api.ts';
import { JobView } from './job-view.tsx';
import { JobsView } from './jobs-view.tsx';
import { SignIn } from './sign-in.tsx';
import './style.css';
import { Trouble } from './trouble.tsx';
import { whileSeen } from './use-feed.ts';

type Door =
  | { readonly kind: 'ASKING' }
  | { readonly kind: 'CLOSED'; readonly message: string }
  | { readonly kind: 'OPEN'; readonly host: Host }
  | { readonly kind: 'FAILED'; readonly error: unknown };

/** A link may bring a token behind its #, which no server sees; the address forgets it at once. */
function takeTokenOfLink(): void {
  const [, token] = /^#token=([\w-]+)$/.exec(location.hash) ?? [];
  if (token === undefined) return;
  storeToken(token);
  history.replaceState(null, '', '#/');
}

function useRoute(): string {
  const [route, setRoute] = useState(location.hash.replace(/^#\/?/, ''));
  useEffect(() => {
    const look = () => {
      takeTokenOfLink();
      setRoute(location.hash.replace(/^#\/?/, ''));
      scrollTo(0, 0);
    };
    addEventListener('hashchange', look);
    return () => removeEventListener('hashchange', look);
  }, []);
  return decodeURIComponent(route);
}

function Page() {
  const route = useRoute();
  const [door, setDoor] = useState<Door>({ kind: 'ASKING' });
  const knock = (signal?: AbortSignal) =>
    call(HostService.method.getHost, {}, signal).then(
      (host) => setDoor({ kind: 'OPEN', host }),
      (error: unknown) => {
        if (signal?.aborted === true) return;
        const isClosed = error instanceof ApiError && error.status === 401;
        setDoor(isClosed ? { kind: 'CLOSED', message: error.message } : { kind: 'FAILED', error });
      },
    );
  useEffect(() => whileSeen((signal) => void knock(signal)), []);
  const leave = () => {
    storeToken('');
    void knock();
  };
  return (
    <>
      <header>
        <a class="brand" href="#/">
          gnnd
        </a>
        {door.kind === 'OPEN' && (
          <span>
            {door.host.hostname} · {door.host.version} · {door.host.ready ? 'ready' : 'not ready'}
          </span>
        )}
        {door.kind === 'OPEN' && hasToken() && (
          <button type="button" onClick={leave}>
            Sign out
          </button>
        )}
      </header>
      {door.kind === 'CLOSED' && <SignIn message={door.message} onToken={() => void knock()} />}
      {door.kind === 'FAILED' && <Trouble error={door.error} />}
      {door.kind === 'OPEN' &&
        (route.startsWith('jobs/') ? <JobView name={route} /> : <JobsView />)}
    </>
  );
}

takeTokenOfLink();
const place = document.getElementById('page');
if (place !== null) render(<Page />, place);
