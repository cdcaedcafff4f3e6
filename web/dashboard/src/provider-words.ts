// Describes a failed call in the words of its model provider.
import type { components } from './api/admin-api';

type ProviderError = components['schemas']['ProviderError'];

/** Returns the status, the message and the pause that the provider asked for, as far as they are known. */
export function providerWords({ status, message, retryAfterMs }: ProviderError): string {
  const parts = [
    status === null ? 'an error inside the stream' : `status ${status}`,
    message === null ? undefined : `“${message}”`,
    retryAfterMs === null ? undefined : `wait ${Math.ceil(retryAfterMs / 1000)} s`,
  ];
  return parts.filter((part) => part !== undefined).join(' · ');
}
