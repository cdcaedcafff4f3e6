// Feed of an agent: address, interval, result of the last fetch.
import { Alert, Button, Group, Loader, Select, SimpleGrid, Stack, Text, TextInput } from '@mantine/core';
import { IconAlertTriangle, IconCircleCheck, IconRefresh } from '@tabler/icons-react';
import { useMutation } from '@tanstack/react-query';
import { type FetchedFeed, fetchFeed } from '../../api/products';
import { useSession } from '../../api/session';
import type { ProductFeed } from '../../api/types';
import { Card } from '../../components/Card';
import { ErrorAlert } from '../../components/ErrorAlert';
import { Facts } from '../../components/Facts';
import { When } from '../../components/formats';
import { validateFeedAddress } from './feed-address';
import { adviceOn } from './feed-advice';
import type { SectionProps } from './section';

const INTERVALS: [number, string][] = [
  [5, 'Every 5 minutes'],
  [15, 'Every 15 minutes'],
  [60, 'Every hour'],
  [360, 'Every 6 hours'],
  [1_440, 'Every day'],
  [10_080, 'Every week'],
];
const FORMATS = [
  { value: 'auto', label: 'Detect automatically' },
  { value: 'csv', label: 'CSV' },
  { value: 'json', label: 'JSON' },
];
const NEW_FEED: ProductFeed = { url: '', everyMinutes: 60, format: 'auto' };

interface FeedFormProps extends SectionProps {
  agentId: string;
  /** Saved feed, if any. */
  saved: FetchedFeed | null;
  /** A fetch is expected. */
  isAwaited: boolean;
  onAsked: () => void;
}

export function FeedForm({ form, isReadOnly, fieldError, agentId, saved, isAwaited, onAsked }: FeedFormProps) {
  const { ecommerce } = form.fields;
  const { feed } = ecommerce;
  const set = (feed: ProductFeed | null) => form.set({ ecommerce: { ...ecommerce, feed } });
  if (isReadOnly && feed === null) return null;
  const isSaved = feed !== null && saved !== null && feed.url === saved.url;
  return (
    <Card
      title="Feed"
      about="A file on the web that is fetched regularly, so that the agent stays in sync with your shop."
      actions={
        feed !== null &&
        !isReadOnly && (
          <Button size="compact-sm" variant="subtle" color="red" onClick={() => set(null)}>
            Remove feed
          </Button>
        )
      }
    >
      {feed === null ? (
        <Group>
          <Button variant="default" onClick={() => set(NEW_FEED)}>
            Add a feed
          </Button>
        </Group>
      ) : (
        <Facts isReadOnly={isReadOnly}>
          <Fields feed={feed} fieldError={fieldError} onChange={(changes) => set({ ...feed, ...changes })} />
        </Facts>
      )}
      {isSaved && (
        <LastFetch agentId={agentId} feed={saved} isAwaited={isAwaited} onAsked={isReadOnly ? null : onAsked} />
      )}
      {feed !== null && !isSaved && (
        <Text size="sm" c="dimmed">
          The first fetch starts when you save. Its products replace an uploaded file.
        </Text>
      )}
      {feed === null && saved !== null && (
        <Text size="sm" c="dimmed">
          Fetching stops when you save. The products of the last fetch stay until you delete them.
        </Text>
      )}
    </Card>
  );
}

interface FieldsProps {
  feed: ProductFeed;
  fieldError: (path: string) => string | undefined;
  onChange: (changes: Partial<ProductFeed>) => void;
}

function Fields({ feed, fieldError, onChange }: FieldsProps) {
  const usual = INTERVALS.some(([minutes]) => minutes === feed.everyMinutes);
  const intervals: [number, string][] = usual
    ? INTERVALS
    : [[feed.everyMinutes, `Every ${feed.everyMinutes} minutes`], ...INTERVALS];
  return (
    <Stack>
      <TextInput
        label="Address"
        placeholder="https://shop.example/products.csv"
        type="url"
        value={feed.url}
        error={(feed.url !== '' && validateFeedAddress(feed.url)) || fieldError('ecommerce.feed.url')}
        onChange={(event) => onChange({ url: event.currentTarget.value.trim() })}
      />
      <SimpleGrid cols={{ base: 1, xs: 2 }}>
        <Select
          label="Interval"
          data={intervals.map(([minutes, label]) => ({ value: String(minutes), label }))}
          value={String(feed.everyMinutes)}
          error={fieldError('ecommerce.feed.everyMinutes')}
          onChange={(minutes) => onChange({ everyMinutes: Number(minutes) })}
        />
        <Select
          label="Format"
          data={FORMATS}
          value={feed.format}
          error={fieldError('ecommerce.feed.format')}
          onChange={(format) => onChange({ format: format as ProductFeed['format'] })}
        />
      </SimpleGrid>
    </Stack>
  );
}

interface LastFetchProps {
  agentId: string;
  feed: FetchedFeed;
  isAwaited: boolean;
  onAsked: (() => void) | null;
}

function LastFetch({ agentId, feed, isAwaited, onAsked }: LastFetchProps) {
  const org = useSession().organization.id;
  const asking = useMutation({
    mutationFn: (confirm: boolean) => fetchFeed(org, agentId, confirm),
    onSuccess: () => onAsked?.(),
  });
  return (
    <Stack gap="sm">
      {asking.isError && <ErrorAlert error={asking.error} />}
      <Outcome feed={feed} isAwaited={isAwaited} />
      {onAsked !== null && (
        <Group>
          <Button
            variant="default"
            leftSection={<IconRefresh size={16} aria-hidden />}
            disabled={isAwaited}
            loading={asking.isPending}
            onClick={() => asking.mutate(false)}
          >
            Fetch now
          </Button>
          {feed.needsConfirmation && !isAwaited && (
            <Button variant="default" color="red" loading={asking.isPending} onClick={() => asking.mutate(true)}>
              Replace anyway
            </Button>
          )}
        </Group>
      )}
    </Stack>
  );
}

function Outcome({ feed, isAwaited }: { feed: FetchedFeed; isAwaited: boolean }) {
  if (isAwaited) {
    return (
      <Group gap="xs" role="status">
        <Loader size="xs" aria-hidden />
        <Text size="sm">Fetching starts within a few seconds…</Text>
      </Group>
    );
  }
  if (feed.error !== null) {
    return (
      <Alert
        color="red"
        variant="light"
        icon={<IconAlertTriangle aria-hidden />}
        title={feed.needsConfirmation ? 'The feed needs your confirmation' : 'The last fetch failed'}
      >
        <Text size="sm">
          {feed.error.charAt(0).toUpperCase() + feed.error.slice(1)}. {adviceOn(feed.error)}
        </Text>
        <Text size="sm" component="div" mt={4}>
          Attempted <Ago at={feed.lastAttemptAt} />
          {feed.lastSuccessAt !== null && (
            <>
              ; last success <Ago at={feed.lastSuccessAt} />
            </>
          )}
          . The next attempt is automatic; the products stay until then.
        </Text>
      </Alert>
    );
  }
  return (
    <Group gap="xs" role="status" wrap="nowrap">
      <IconCircleCheck size={18} aria-hidden color="var(--mantine-color-green-filled)" className="no-shrink" />
      <Text size="sm" component="div">
        Fetched <Ago at={feed.lastAttemptAt} />
      </Text>
    </Group>
  );
}

function Ago({ at }: { at: string | null }) {
  return at === null ? null : <When at={at} />;
}
