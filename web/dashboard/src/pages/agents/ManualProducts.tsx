// Manual products, stored in the agent itself.
import { ActionIcon, Box, Button, Group, Paper, SimpleGrid, Stack, TextInput } from '@mantine/core';
import { IconPlus, IconTrash } from '@tabler/icons-react';
import type { Product } from '../../api/types';
import { Card } from '../../components/Card';
import { Picture } from '../../components/ProductStrip';
import type { SectionProps } from './section';
import { validateWebAddress } from './web-address';

const PRODUCTS_MAX = 1000;
const NEW_PRODUCT: Product = { title: '', price: '', image: '', url: '' };

export function ManualProducts({ form, isReadOnly, fieldError }: SectionProps) {
  const { ecommerce } = form.fields;
  const setProducts = (products: Product[]) => form.set({ ecommerce: { ...ecommerce, products } });
  const change = (index: number, changes: Partial<Product>) =>
    setProducts(ecommerce.products.map((product, at) => (at === index ? { ...product, ...changes } : product)));
  if (isReadOnly && ecommerce.products.length === 0) return null;
  return (
    <Card
      title="Manual products"
      about="A few products stored in the agent itself. Searches find them together with the catalog."
    >
      {ecommerce.products.map((product, index) => (
        <ProductRow
          key={index}
          product={product}
          number={index + 1}
          fieldError={(field) => fieldError(`ecommerce.products[${index}].${field}`)}
          isReadOnly={isReadOnly}
          onChange={(changes) => change(index, changes)}
          onRemove={() => setProducts(ecommerce.products.filter((_, at) => at !== index))}
        />
      ))}
      {!isReadOnly && (
        <Group>
          <Button
            variant="default"
            leftSection={<IconPlus size={16} aria-hidden />}
            disabled={ecommerce.products.length >= PRODUCTS_MAX}
            onClick={() => setProducts([...ecommerce.products, NEW_PRODUCT])}
          >
            Add product
          </Button>
        </Group>
      )}
    </Card>
  );
}

interface ProductRowProps {
  product: Product;
  number: number;
  fieldError: (field: keyof Product) => string | undefined;
  isReadOnly: boolean;
  onChange: (changes: Partial<Product>) => void;
  onRemove: () => void;
}

function ProductRow({ product, number, fieldError, isReadOnly, onChange, onRemove }: ProductRowProps) {
  return (
    <Paper p="sm" radius="md" role="group" aria-label={`Product ${number}`}>
      <Group align="flex-start" wrap="nowrap" gap="sm">
        <Box className="thumb" visibleFrom="xs">
          <Picture product={product} />
        </Box>
        <Stack gap="xs" className="grow">
          <SimpleGrid cols={{ base: 1, xs: 2 }} spacing="xs">
            <TextInput
              size="xs"
              label="Title"
              value={product.title}
              error={product.title.trim() === '' ? 'A product needs a title' : fieldError('title')}
              onChange={(event) => onChange({ title: event.currentTarget.value })}
            />
            <TextInput
              size="xs"
              label="Price, as shown"
              placeholder="$14"
              value={product.price}
              error={fieldError('price')}
              onChange={(event) => onChange({ price: event.currentTarget.value })}
            />
            <TextInput
              size="xs"
              label="Image URL"
              placeholder="https://"
              value={product.image}
              error={validateWebAddress(product.image) ?? fieldError('image')}
              onChange={(event) => onChange({ image: event.currentTarget.value })}
            />
            <TextInput
              size="xs"
              label="Page URL"
              placeholder="https://"
              value={product.url}
              error={validateWebAddress(product.url) ?? fieldError('url')}
              onChange={(event) => onChange({ url: event.currentTarget.value })}
            />
          </SimpleGrid>
        </Stack>
        {!isReadOnly && (
          <ActionIcon variant="subtle" color="gray" aria-label={`Remove product ${number}`} onClick={onRemove}>
            <IconTrash size={16} aria-hidden />
          </ActionIcon>
        )}
      </Group>
    </Paper>
  );
}
