// Explanation of a rejected product file and how to correct it.
import { Alert, Text } from '@mantine/core';
import { IconAlertTriangle } from '@tabler/icons-react';
import { Problem } from '../../api/client';
import { ErrorAlert, explain } from '../../components/ErrorAlert';
import { adviceOn } from './feed-advice';

/** Other errors are errors of the service. */
export function UploadError({ error }: { error: unknown }) {
  const isOfFile = error instanceof Problem && [400, 413, 415].includes(error.status);
  if (!isOfFile) return <ErrorAlert error={error} />;
  const reason = explain(error).advice.replace(/\b(t)he feed/gi, '$1he file');
  return (
    <Alert
      color="red"
      variant="light"
      icon={<IconAlertTriangle aria-hidden />}
      title="The file was not imported; nothing changed"
      role="alert"
    >
      <Text size="sm">
        {reason} {adviceOn(error.message)}
      </Text>
    </Alert>
  );
}
