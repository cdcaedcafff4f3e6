// Imported products with search.
import { Button, Group, Stack, Text, TextInput } from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import { IconSearch } from '@tabler/icons-react';
import { useInfiniteQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { type CatalogProduct, type KeptProducts, productItemsQuery } from '../../api/products';
import { useSession } from '../../api/session';
import { Card } from '../../components/Card';
import { ErrorAlert } from '../../components/ErrorAlert';
import { LoadingRows } from '../../components/Page';
import { Picture, ProductTitle } from '../../components/ProductStrip';
import { count } from './count';

/** Pause after typing before the search starts. */
const DEBOUNCE_MS = 250;

export function ProductList({ agentId, kept }: { agentId: string; kept: KeptProducts }) {
  const org = useSession().organization.id;
  const [text, setText] = useState('');
  const [search] = useDebouncedValue(text.trim(), DEBOUNCE_MS);
  const items = useInfiniteQuery(productItemsQuery(org, agentId, kept.version, search));
  const shown = items.data?.pages.flatMap((page) => page.items) ?? [];
  const total = items.data?.pages[0]?.total ?? 0;
  return (
    <Card title="Products in the catalog">
      <TextInput
        aria-label="Search products"
        placeholder="Search by title, color, description…"
        leftSection={<IconSearch size={16} aria-hidden />}
        value={text}
        onChange={(event) => setText(event.currentTarget.value)}
      />
      {items.isPending && <LoadingRows />}
      {items.isError && <ErrorAlert error={items.error} retry={() => void items.refetch()} />}
      {items.isSuccess && (
        <Text size="xs" c="dimmed" role="status" data-testid="products-found">
          {items.isPlaceholderData
            ? 'Searching…'
            : search === ''
              ? count(total, 'product')
              : `${count(total, 'product')} with “${search}”`}
        </Text>
      )}
      {items.isSuccess && total === 0 && (
        <Text size="sm">A product must contain every word. Try fewer or shorter words.</Text>
      )}
      {shown.length > 0 && (
        <Stack gap={0} component="ul" className="plain-list" aria-label="Products in the catalog">
          {shown.map((product, index) => (
            <Row key={index} product={product} />
          ))}
        </Stack>
      )}
      {items.hasNextPage && (
        <Group justify="center">
          <Button variant="default" loading={items.isFetchingNextPage} onClick={() => void items.fetchNextPage()}>
            Show more
          </Button>
        </Group>
      )}
    </Card>
  );
}

function Row({ product }: { product: CatalogProduct }) {
  const attributes = Object.entries(product.attributes ?? {}).map(([name, value]) => `${name}: ${value}`);
  return (
    <Group component="li" wrap="nowrap" gap="sm" py="xs" className="list-row">
      <div className="thumb thumb-small">
        <Picture product={product} />
      </div>
      <div className="grow">
        <Text size="sm" fw={550} className="break">
          <ProductTitle product={product} />
        </Text>
        <Text size="xs" c="dimmed" lineClamp={1} className="break">
          {[product.description, ...attributes].filter(Boolean).join(' · ')}
        </Text>
      </div>
      <Text size="sm" className="nowrap">
        {product.price}
      </Text>
    </Group>
  );
}
