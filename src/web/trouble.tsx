import { ApiError } from './api.ts';

/** Shows what went wrong, if anything did. */
export function Trouble({ error }: { readonly error: unknown }) {
  if (error === null || error === undefined) return null;
  if (error instanceof ApiError && error.status === 401) return null;
  const message = error instanceof Error ? error.message : String(error);
  const isLost = error instanceof TypeError;
  return (
    <p class="trouble" role="alert">
      {isLost ? 'The daemon cannot be reached; this tries again.' : message}
    </p>
  );
}
