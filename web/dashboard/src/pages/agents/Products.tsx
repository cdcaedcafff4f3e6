// Products tab: upload, feed, imported products and manual products.
import { Alert, Stack, Switch, Text } from '@mantine/core';
import { IconEyeOff } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { isAwaited, productsQuery } from '../../api/products';
import { useSession } from '../../api/session';
import { Card } from '../../components/Card';
import { ErrorAlert } from '../../components/ErrorAlert';
import { Facts } from '../../components/Facts';
import { LoadingRows } from '../../components/Page';
import { Catalog } from './Catalog';
import { FeedForm } from './FeedForm';
import { ManualProducts } from './ManualProducts';
import { ProductList } from './ProductList';
import type { SectionProps } from './section';

export function Products({ agentId, ...section }: SectionProps & { agentId: string }) {
  const { form, isReadOnly } = section;
  const org = useSession().organization.id;
  // Last attempt when a fetch was requested; a later one ends the wait.
  const [attemptBefore, setAttemptBefore] = useState<string | null>(null);
  const state = useQuery(productsQuery(org, agentId, attemptBefore));
  if (state.isPending) return <LoadingRows />;
  if (state.isError) return <ErrorAlert error={state.error} retry={() => void state.refetch()} />;
  const { kept, feed } = state.data;
  const { ecommerce } = form.fields;
  const hasSome = kept !== null || ecommerce.products.length > 0;
  return (
    <Stack>
      <Facts isReadOnly={isReadOnly}>
        <Card title="Products">
          <Switch
            label="Let the agent show products"
            description="Searches for what a visitor asks and shows matches as cards below the reply."
            checked={ecommerce.enabled}
            onChange={(event) => form.set({ ecommerce: { ...ecommerce, enabled: event.currentTarget.checked } })}
          />
          {hasSome && !ecommerce.enabled && (
            <Alert variant="light" color="yellow" icon={<IconEyeOff aria-hidden />}>
              <Text size="sm">Visitors see no products while this is off.</Text>
            </Alert>
          )}
        </Card>
      </Facts>
      <Catalog agentId={agentId} kept={kept} feed={feed} isReadOnly={isReadOnly} />
      <FeedForm
        {...section}
        agentId={agentId}
        saved={feed}
        isAwaited={feed !== null && isAwaited(feed, attemptBefore)}
        onAsked={() => {
          setAttemptBefore(feed?.lastAttemptAt ?? null);
          void state.refetch();
        }}
      />
      {kept !== null && <ProductList agentId={agentId} kept={kept} />}
      <Facts isReadOnly={isReadOnly}>
        <ManualProducts {...section} />
      </Facts>
    </Stack>
  );
}
