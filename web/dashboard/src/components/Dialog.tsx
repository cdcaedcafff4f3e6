// Dialog that is shown while it is mounted and then restores the focus.
import { Modal, type ModalProps } from '@mantine/core';
import { useEffect, useRef, useState } from 'react';

export function Dialog(props: Omit<ModalProps, 'opened'>) {
  const [before] = useState(() => document.activeElement);
  const isThere = useRef(false);
  useEffect(() => {
    isThere.current = true;
    return () => {
      isThere.current = false;
      // Deferred: an effect that is cleaned up and run again has not closed the dialog.
      setTimeout(() => {
        if (!isThere.current && before instanceof HTMLElement) before.focus({ preventScroll: true });
      });
    };
  }, [before]);
  return <Modal opened returnFocus={false} {...props} />;
}
