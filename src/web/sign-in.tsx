import { useState } from 'preact/hooks';
import { hasToken, storeToken } from './api.ts';

/** Asks for a token; it stays in this tab. */
export function SignIn({
  message,
  onToken,
}: {
  readonly message: string;
  readonly onToken: () => void;
}) {
  const [token, setToken] = useState('');
  return (
    <main>
      <form
        class="sign-in"
        onSubmit={(event) => {
          event.preventDefault();
          storeToken(token.trim());
          onToken();
        }}
      >
        <h1>Sign in</h1>
        <label for="token">Token</label>
        <input
          id="token"
          type="password"
          autocomplete="off"
          required
          value={token}
          onInput={(event) => setToken(event.currentTarget.value)}
        />
        {hasToken() && (
          <p class="trouble" role="alert">
            {message}
          </p>
        )}
        <button type="submit">Look</button>
        <p>
          On the daemon’s host <code>gnnctl page</code> prints an address that needs none, and{' '}
          <code>gnnd token create NAME --role VIEWER</code> makes one that lasts.
        </p>
      </form>
    </main>
  );
}
