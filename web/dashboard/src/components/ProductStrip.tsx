// Product cards as visitors see them: image, price and link.
import { Anchor, Card, Center, Text } from '@mantine/core';
import { IconPhoto } from '@tabler/icons-react';
import { useState } from 'react';
import type { Product } from '../api/types';

/** Product image, or a placeholder if it is missing or fails to load. */
export function Picture({ product }: { product: Product }) {
  const [broken, setBroken] = useState<string>();
  const usable = /^https:\/\//i.test(product.image) && broken !== product.image;
  if (!usable) {
    return (
      <Center className="product-picture product-no-picture" aria-hidden>
        <IconPhoto size={22} stroke={1.4} />
      </Center>
    );
  }
  return (
    <img
      className="product-picture"
      src={product.image}
      alt=""
      loading="lazy"
      referrerPolicy="no-referrer"
      onError={() => setBroken(product.image)}
    />
  );
}

/** Links to the page of the product if its address is http(s). */
export function ProductTitle({ product }: { product: Product }) {
  if (!/^https?:\/\//i.test(product.url)) return product.title;
  return (
    <Anchor href={product.url} target="_blank" rel="noopener noreferrer nofollow" inherit c="inherit">
      {product.title}
    </Anchor>
  );
}

export function ProductStrip({ products }: { products: Product[] }) {
  return (
    <div className="product-strip">
      {products.map((product, index) => (
        <Card key={index} padding="xs" radius="md" withBorder className="panel">
          <Picture product={product} />
          <Text size="sm" fw={600} mt={6} lineClamp={2}>
            <ProductTitle product={product} />
          </Text>
          <Text size="sm" c="dimmed">
            {product.price}
          </Text>
        </Card>
      ))}
    </div>
  );
}
