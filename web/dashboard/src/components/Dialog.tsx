// A dialog that lives as long as it is shown, and gives the focus back to where it came from.
import { Modal, type ModalProps } from '@mantine/core';
import { useEffect, useRef, useState } from 'react';

export function Dialog(props: Omit<ModalProps, 'opened'>) {
  const [before] = useState(() => document.activeElement);
  const isThere = useRef(false);
  useEffect(() => {
    isThere.current = true;
    return () => {
      isThere.current = false;
      // Later, because what goes and comes back at once has not gone.
      setTimeout(() => {
        if (!isThere.current && before instanceof HTMLElement) before.focus({ preventScroll: true });
      });
    };
  }, [before]);
  return <Modal opened returnFocus={false} {...props} />;
}
