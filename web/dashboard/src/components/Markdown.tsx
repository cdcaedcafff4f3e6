// Renders Markdown of replies as a fixed set of elements; everything else stays text. Links
// lead to web pages and email only. Images are not loaded, because a request would reveal that somebody read the reply.
import { Anchor, Code } from '@mantine/core';
import { Fragment, type ReactNode } from 'react';

/** Maximum nesting of quotes and lists. */
const DEPTH_MAX = 4;

// No part of it may begin at every character and read to the end of the line, which would be quadratic.
const INLINE =
  /`([^`\n]+)`|\*\*([^\n]+?)\*\*|(?<![\w*])[*_]((?:`[^`\n]+`|[^*_`\n])+)[*_](?!\w)|\[([^[\]\n]+)\]\(((?:[^\s()]|\([^\s()]*\))+)\)|(https?:\/\/[^\s<>()]+[^\s<>().,;:!?])/g;

export function Markdown({ text }: { text: string }) {
  return <div className="markdown">{blocks(text.split('\n'), 0)}</div>;
}

function blocks(lines: string[], depth: number): ReactNode[] {
  const found: ReactNode[] = [];
  let at = 0;
  const takeWhile = (holds: (line: string) => boolean) => {
    const begin = at;
    while (at < lines.length && holds(lines[at] ?? '')) at += 1;
    return lines.slice(begin, at);
  };
  while (at < lines.length) {
    const line = lines[at] ?? '';
    const key = at;
    if (line.trim() === '') {
      at += 1;
    } else if (line.startsWith('```')) {
      at += 1;
      const code = takeWhile((line) => !line.startsWith('```'));
      at += 1;
      found.push(
        <Code key={key} block>
          {code.join('\n')}
        </Code>,
      );
    } else if (/^#{1,6} /.test(line)) {
      at += 1;
      // Headings of a reply must not become headings of the page.
      found.push(
        <p key={key} className="markdown-heading">
          {inline(line.replace(/^#+ /, ''))}
        </p>,
      );
    } else if (/^> ?/.test(line) && depth < DEPTH_MAX) {
      const quoted = takeWhile((line) => /^> ?/.test(line)).map((line) => line.replace(/^> ?/, ''));
      found.push(<blockquote key={key}>{blocks(quoted, depth + 1)}</blockquote>);
    } else if (/^\s*[-*+] /.test(line)) {
      const items = takeWhile((line) => /^\s*[-*+] /.test(line));
      found.push(
        <ul key={key}>
          {items.map((item, index) => (
            <li key={index}>{inline(item.replace(/^\s*[-*+] /, ''))}</li>
          ))}
        </ul>,
      );
    } else if (/^\s*\d+[.)] /.test(line)) {
      const items = takeWhile((line) => /^\s*\d+[.)] /.test(line));
      found.push(
        <ol key={key}>
          {items.map((item, index) => (
            <li key={index}>{inline(item.replace(/^\s*\d+[.)] /, ''))}</li>
          ))}
        </ol>,
      );
    } else if (isTable(lines, at)) {
      const rows = takeWhile((line) => line.includes('|'));
      found.push(<MarkdownTable key={key} rows={rows} />);
    } else {
      const first = at;
      at += 1;
      takeWhile((line) => line.trim() !== '' && !/^(```|#{1,6} |> |\s*[-*+] |\s*\d+[.)] )/.test(line));
      found.push(
        <p key={key}>
          {lines.slice(first, at).map((line, index) => (
            <Fragment key={index}>
              {index > 0 && <br />}
              {inline(line)}
            </Fragment>
          ))}
        </p>,
      );
    }
  }
  return found;
}

function isTable(lines: string[], at: number): boolean {
  return (lines[at] ?? '').includes('|') && /^\s*\|?\s*:?-{2,}/.test(lines[at + 1] ?? '');
}

function MarkdownTable({ rows }: { rows: string[] }) {
  const cells = (row: string) =>
    row
      .replace(/^\s*\||\|\s*$/g, '')
      .split('|')
      .map((cell) => cell.trim());
  const [head = '', , ...body] = rows;
  return (
    <table>
      <thead>
        <tr>
          {cells(head).map((cell, index) => (
            <th key={index}>{inline(cell)}</th>
          ))}
        </tr>
      </thead>
      <tbody>
        {body.map((row, index) => (
          <tr key={index}>
            {cells(row).map((cell, index) => (
              <td key={index}>{inline(cell)}</td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function inline(text: string): ReactNode[] {
  const found: ReactNode[] = [];
  let end = 0;
  for (const match of text.matchAll(INLINE)) {
    const [whole, code, strong, emphasis, label, target, address] = match;
    if (match.index > end) found.push(text.slice(end, match.index));
    end = match.index + whole.length;
    found.push(
      <Fragment key={match.index}>{token(whole, { code, strong, emphasis, label, target, address })}</Fragment>,
    );
  }
  if (end < text.length) found.push(text.slice(end));
  return found;
}

function token(
  whole: string,
  parts: Record<'code' | 'strong' | 'emphasis' | 'label' | 'target' | 'address', string | undefined>,
): ReactNode {
  if (parts.code !== undefined) return <Code>{parts.code}</Code>;
  if (parts.strong !== undefined) return <strong>{inline(parts.strong)}</strong>;
  if (parts.emphasis !== undefined) return <em>{inline(parts.emphasis)}</em>;
  const target = parts.target ?? parts.address ?? '';
  if (!/^(https?:\/\/|mailto:)/i.test(target)) return whole;
  return (
    <Anchor href={target} target="_blank" rel="noopener noreferrer nofollow" inherit underline="always" c="inherit">
      {parts.label ?? target}
    </Anchor>
  );
}
