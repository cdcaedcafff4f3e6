// Parses Markdown into a tree of plain objects. HTML is neither produced nor accepted: unknown syntax stays text.

import { type Inline, parseInline } from "./inline.ts";

export type Block =
  | { kind: "paragraph"; content: Inline[] }
  | { kind: "heading"; level: number; content: Inline[] }
  | { kind: "code"; text: string }
  | { kind: "quote"; blocks: Block[] }
  | { kind: "list"; start: number | null; items: Block[][] }
  | { kind: "table"; align: Align[]; head: Inline[][]; rows: Inline[][][] }
  | { kind: "rule" };

export type Align = "start" | "center" | "end" | null;

/** A block with its source lines: the same lines make the same block. */
export interface SourcedBlock {
  source: string;
  block: Block;
}

/** Maximum nesting of quotes and lists; deeper ones are paragraphs, because browser layout is recursive. */
const DEPTH_MAX = 6;
const TABLE_COLUMNS_MAX = 30;
/** Blank lines after which a list continues. */
const BLANK_LINES_MAX = 3;

const FENCE = /^ {0,3}(`{3,}|~{3,})([^`]*)$/;
const HEADING = /^ {0,3}(#{1,6})(?:[ \t]+|$)/;
const RULE = /^ {0,3}([-*_])(?:[ \t]*\1){2,}[ \t]*$/;
const QUOTE = /^ {0,3}> ?/;
const ITEM = /^( {0,3})([-*+]|\d{1,9}[.)])(?:( {1,4}|\t)(?=\S)|[ \t]*$)/;
const TABLE_RULE = /^ {0,3}\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$/;

export function parse(text: string): SourcedBlock[] {
  const lines = text.replace(/\r\n?/g, "\n").split("\n");
  return parseLines(lines, 0);
}

function parseLines(lines: string[], depth: number): SourcedBlock[] {
  const blocks: SourcedBlock[] = [];
  let at = 0;
  while (at < lines.length) {
    if (isBlank(lines[at])) {
      at += 1;
      continue;
    }
    const [block, next] = readBlock(lines, at, depth);
    blocks.push({ source: lines.slice(at, next).join("\n"), block });
    at = next;
  }
  return blocks;
}

function readBlock(lines: string[], at: number, depth: number): [Block, number] {
  const line = lines[at] ?? "";
  const fence = FENCE.exec(line);
  if (fence) return readFence(lines, at, fence[1] ?? "```");
  const heading = HEADING.exec(line);
  if (heading) {
    const content = line.slice(heading[0].length).replace(/[ \t]+#*[ \t]*$/, "");
    return [{ kind: "heading", level: (heading[1] ?? "#").length, content: parseInline(content) }, at + 1];
  }
  if (RULE.test(line)) return [{ kind: "rule" }, at + 1];
  if (depth < DEPTH_MAX) {
    if (QUOTE.test(line)) return readQuote(lines, at, depth);
    if (ITEM.test(line)) return readList(lines, at, depth);
  }
  if (isTable(lines, at)) return readTable(lines, at);
  return readParagraph(lines, at, depth);
}

function readFence(lines: string[], at: number, fence: string): [Block, number] {
  let end = at + 1;
  const closes = (line: string) => {
    const mark = line.trim();
    return mark.length >= fence.length && mark === (fence[0] ?? "`").repeat(mark.length);
  };
  while (end < lines.length && !closes(lines[end] ?? "")) end += 1;
  // An unclosed fence is code up to here: the rest is still streaming.
  return [{ kind: "code", text: lines.slice(at + 1, end).join("\n") }, Math.min(end + 1, lines.length)];
}

function readQuote(lines: string[], at: number, depth: number): [Block, number] {
  let end = at;
  const inner: string[] = [];
  while (end < lines.length && QUOTE.test(lines[end] ?? "")) {
    inner.push((lines[end] ?? "").replace(QUOTE, ""));
    end += 1;
  }
  return [{ kind: "quote", blocks: blocksOf(inner, depth + 1) }, end];
}

function readList(lines: string[], at: number, depth: number): [Block, number] {
  const first = ITEM.exec(lines[at] ?? "");
  const marker = first?.[2] ?? "-";
  const ordered = /\d/.test(marker);
  const items: Block[][] = [];
  let end = at;
  for (;;) {
    const item = ITEM.exec(lines[end] ?? "");
    const isOurs = item && end < lines.length && (item[2] ?? "").slice(-1) === marker.slice(-1);
    if (!isOurs || RULE.test(lines[end] ?? "")) break;
    const indent = item[0].length;
    const inner = [(lines[end] ?? "").slice(indent)];
    end += 1;
    while (end < lines.length && continuesItem(lines, end, indent, inner)) {
      inner.push(unindent(lines[end] ?? "", indent));
      end += 1;
    }
    items.push(blocksOf(inner, depth + 1));
    const next = skipBlank(lines, end);
    if (next < lines.length && ITEM.test(lines[next] ?? "")) end = next;
  }
  return [{ kind: "list", start: ordered ? Number.parseInt(marker, 10) : null, items }, end];
}

function continuesItem(lines: string[], at: number, indent: number, inner: string[]): boolean {
  const line = lines[at] ?? "";
  if (isBlank(line)) {
    const next = skipBlank(lines, at);
    return next < lines.length && !isBlank(lines[next]) && indentOf(lines[next] ?? "") >= Math.min(indent, 2);
  }
  // Models indent by two, three or four spaces, whatever the width of the marker.
  if (indentOf(line) >= Math.min(indent, 2)) return true;
  return !isBlank(inner[inner.length - 1]) && !startsBlock(line);
}

function isTable(lines: string[], at: number): boolean {
  const head = lines[at] ?? "";
  const rule = lines[at + 1] ?? "";
  if (!head.includes("|") || !rule.includes("-") || !TABLE_RULE.test(rule)) return false;
  const columns = cells(head).length;
  return columns === cells(rule).length && columns <= TABLE_COLUMNS_MAX;
}

function readTable(lines: string[], at: number): [Block, number] {
  const head = cells(lines[at] ?? "");
  const align = cells(lines[at + 1] ?? "").map((cell): Align => {
    const [left, right] = [cell.startsWith(":"), cell.endsWith(":")];
    return left && right ? "center" : right ? "end" : left ? "start" : null;
  });
  const rows: Inline[][][] = [];
  let end = at + 2;
  while (end < lines.length && !isBlank(lines[end]) && (lines[end] ?? "").includes("|")) {
    const row = cells(lines[end] ?? "");
    rows.push(head.map((_, column) => parseInline(row[column] ?? "")));
    end += 1;
  }
  return [{ kind: "table", align, head: head.map((cell) => parseInline(cell)), rows }, end];
}

function cells(line: string): string[] {
  const inner = line.trim().replace(/^\|/, "").replace(/(^|[^\\])\|$/, "$1");
  return inner.split(/(?<!\\)\|/).map((cell) => cell.trim().replace(/\\\|/g, "|"));
}

function readParagraph(lines: string[], at: number, depth: number): [Block, number] {
  let end = at + 1;
  const ends = (line: string) => isBlank(line) || (depth < DEPTH_MAX && startsBlock(line));
  while (end < lines.length && !ends(lines[end] ?? "") && !isTable(lines, end)) end += 1;
  const text = lines.slice(at, end).map((line) => line.trim()).join("\n");
  return [{ kind: "paragraph", content: parseInline(text) }, end];
}

function startsBlock(line: string): boolean {
  return FENCE.test(line) || HEADING.test(line) || RULE.test(line) || QUOTE.test(line) || ITEM.test(line);
}

function blocksOf(lines: string[], depth: number): Block[] {
  return parseLines(lines, depth).map(({ block }) => block);
}

function isBlank(line: string | undefined): boolean {
  return line === undefined || line.trim() === "";
}

function skipBlank(lines: string[], at: number): number {
  let next = at;
  while (next < lines.length && next - at < BLANK_LINES_MAX && isBlank(lines[next])) next += 1;
  return next;
}

function indentOf(line: string): number {
  const spaces = /^[ \t]*/.exec(line)?.[0] ?? "";
  return spaces.replace(/\t/g, "    ").length;
}

function unindent(line: string, indent: number): string {
  return line.replace(/\t/g, "    ").replace(new RegExp(`^ {0,${indent}}`), "");
}
