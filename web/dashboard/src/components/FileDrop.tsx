// Drop zone for files; inactive without `onDrop`.
import { type DragEvent, type ReactNode, useState } from 'react';

interface FileDropProps {
  onDrop: ((files: File[]) => void) | undefined;
  children: ReactNode;
}

export function FileDrop({ onDrop, children }: FileDropProps) {
  const [isOver, setOver] = useState(false);
  const over = (event: DragEvent) => {
    if (onDrop === undefined || !event.dataTransfer.types.includes('Files')) return;
    event.preventDefault();
    setOver(true);
  };
  const drop = (event: DragEvent) => {
    setOver(false);
    // Text is dropped into the field below the pointer.
    if (onDrop === undefined || !event.dataTransfer.types.includes('Files')) return;
    event.preventDefault();
    onDrop([...event.dataTransfer.files]);
  };
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: whoever has no mouse uses the button inside
    <div className="drop" data-over={isOver} onDragOver={over} onDragLeave={() => setOver(false)} onDrop={drop}>
      {children}
    </div>
  );
}
