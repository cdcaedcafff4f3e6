// Parses inline Markdown: emphasis, code, links. One pass over the text and one over the marks, so that
// parsing takes linear time for every text.

export type Inline =
  | { kind: "text"; text: string }
  | { kind: "break" }
  | { kind: "code"; text: string }
  | { kind: "strong" | "emphasis" | "struck"; content: Inline[] }
  | { kind: "link"; address: string; content: Inline[] };

interface Mark {
  kind: "mark";
  character: string;
  count: number;
  opens: boolean;
  closes: boolean;
}
interface Bracket {
  kind: "bracket";
  image: boolean;
}
type Item = Inline | Mark | Bracket;

/** Maximum nesting of marks; deeper ones stay text, because browser layout is recursive. */
const DEPTH_MAX = 12;
/** Maximum length of a link address; longer ones stay text. */
const ADDRESS_CHARS_MAX = 2048;
/** Opening marks compared with one closing mark. */
const OPENERS_MAX = 50;

const PLAIN = /[^\\`*_~[\]!<\nhH]+/y;
const ANGLE_LINK = /<((?:https?:\/\/|mailto:)[^\s<>]{1,2048})>/iy;
/** Excludes brackets, which end the text of a link that is itself an address. */
const BARE_LINK = /https?:\/\/[^\s<>"`|\\^{}[\]]{1,2048}/iy;
const DESTINATION = /\(\s*(?:<([^<>\n]*)>|([^\s()<>]*(?:\([^\s()<>]*\)[^\s()<>]*)*))(?:\s+(?:"[^"\n]*"|'[^'\n]*'|\([^()\n]*\)))?\s*\)/y;
const PUNCTUATION = /[!-/:-@[-`{-~\p{P}\p{S}]/u;
const SPACE = /\s/;

export function parseInline(text: string): Inline[] {
  return new InlineReader(text).read();
}

class InlineReader {
  private at = 0;
  private readonly items: Item[] = [];
  /** Positions of open brackets. */
  private readonly brackets: number[] = [];
  /** Lengths of backtick runs without a partner from here on. */
  private readonly lonelyTicks = new Set<number>();

  constructor(private readonly text: string) {}

  read(): Inline[] {
    while (this.at < this.text.length) this.step();
    return settle(this.items);
  }

  private step(): void {
    const plain = this.match(PLAIN);
    if (plain) return this.literal(plain[0]);
    switch (this.text[this.at]) {
      case "\\":
        return this.escape();
      case "`":
        return this.code();
      case "*":
      case "_":
      case "~":
        return this.mark();
      case "[":
        this.at += 1;
        return this.openBracket(false);
      case "!":
        return this.bang();
      case "]":
        return this.closeBracket();
      case "<":
        return this.angle();
      case "\n":
        this.at += 1;
        this.items.push({ kind: "break" });
        return;
      default:
        return this.bareLink();
    }
  }

  private match(pattern: RegExp): RegExpExecArray | null {
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.text);
    if (found) this.at = pattern.lastIndex;
    return found;
  }

  private literal(text: string): void {
    const last = this.items[this.items.length - 1];
    if (last?.kind === "text") last.text += text;
    else this.items.push({ kind: "text", text });
  }

  private character(): void {
    this.literal(this.text[this.at] ?? "");
    this.at += 1;
  }

  private escape(): void {
    const next = this.text[this.at + 1] ?? "";
    if (next === "\n") {
      this.at += 1;
    } else if (/[!-/:-@[-`{-~]/.test(next)) {
      this.literal(next);
      this.at += 2;
    } else {
      this.character();
    }
  }

  private code(): void {
    const ticks = this.match(/`+/y)?.[0] ?? "`";
    if (!this.lonelyTicks.has(ticks.length)) {
      const runs = /`+/g;
      runs.lastIndex = this.at;
      for (let run = runs.exec(this.text); run; run = runs.exec(this.text)) {
        if (run[0].length !== ticks.length) continue;
        const inner = this.text.slice(this.at, run.index).replace(/\n/g, " ");
        const padded = inner.startsWith(" ") && inner.endsWith(" ") && inner.trim() !== "";
        this.items.push({ kind: "code", text: padded ? inner.slice(1, -1) : inner });
        this.at = runs.lastIndex;
        return;
      }
      this.lonelyTicks.add(ticks.length);
    }
    this.literal(ticks);
  }

  private mark(): void {
    const character = this.text[this.at] ?? "*";
    const before = this.text[this.at - 1] ?? " ";
    const start = this.at;
    while (this.text[this.at] === character) this.at += 1;
    const count = this.at - start;
    const after = this.text[this.at] ?? " ";
    const leans = (near: string, far: string) =>
      !SPACE.test(near) && (!PUNCTUATION.test(near) || SPACE.test(far) || PUNCTUATION.test(far));
    let [opens, closes] = [leans(after, before), leans(before, after)];
    // Underscores inside words are part of the word.
    if (character === "_") {
      [opens, closes] = [opens && (!closes || PUNCTUATION.test(before)), closes && (!opens || PUNCTUATION.test(after))];
    }
    if ((!opens && !closes) || (character === "~" && count !== 2)) this.literal(character.repeat(count));
    else this.items.push({ kind: "mark", character, count, opens, closes });
  }

  private bang(): void {
    if (this.text[this.at + 1] !== "[") return this.character();
    this.at += 2;
    this.openBracket(true);
  }

  private openBracket(image: boolean): void {
    this.brackets.push(this.items.length);
    this.items.push({ kind: "bracket", image });
  }

  private closeBracket(): void {
    this.at += 1;
    const open = this.brackets.pop();
    if (open === undefined) return this.literal("]");
    const destination = this.match(DESTINATION);
    if (!destination) {
      this.items[open] = toText(this.items[open] as Item);
      return this.literal("]");
    }
    const inner = this.items.splice(open);
    const address = destination[1] ?? destination[2] ?? "";
    const content = settle(inner.slice(1));
    // Loading an image would reveal the reader to its host, so it becomes a link.
    this.items.push({ kind: "link", address: address.slice(0, ADDRESS_CHARS_MAX), content: withoutLinks(content) });
  }

  private angle(): void {
    const link = this.match(ANGLE_LINK);
    if (!link) return this.character();
    const address = link[1] ?? "";
    this.items.push({ kind: "link", address, content: [{ kind: "text", text: address }] });
  }

  private bareLink(): void {
    const before = this.text[this.at - 1] ?? " ";
    const found = /\w/.test(before) ? null : this.match(BARE_LINK);
    if (!found) return this.character();
    let address = found[0].replace(/[.,:;!?'*_~]+$/, "");
    // A closing parenthesis belongs to the address only if it was opened there.
    while (address.endsWith(")") && count(address, ")") > count(address, "(")) address = address.slice(0, -1);
    this.at -= found[0].length - address.length;
    this.items.push({ kind: "link", address, content: [{ kind: "text", text: address }] });
  }
}

function count(text: string, character: string): number {
  return text.split(character).length - 1;
}

/** Pairs the marks; unpaired ones stay text. */
function settle(items: Item[]): Inline[] {
  const stack: Item[] = [];
  for (const item of items) {
    if (item.kind !== "mark" || !item.closes) {
      stack.push(item);
      continue;
    }
    const closing = { ...item };
    while (closing.count > 0 && pair(stack, closing)) continue;
    if (closing.count > 0) stack.push(closing);
  }
  return mergeTexts(stack.map(toText));
}

/** Wraps the content between the last matching opening mark and this closing one. */
function pair(stack: Item[], closing: Mark): boolean {
  const lowest = Math.max(0, stack.length - OPENERS_MAX);
  for (let at = stack.length - 1; at >= lowest; at -= 1) {
    const opening = stack[at];
    if (opening?.kind !== "mark" || !opening.opens || opening.character !== closing.character) continue;
    const used = closing.character === "~" || Math.min(opening.count, closing.count) >= 2 ? 2 : 1;
    if (opening.count < used || closing.count < used) return false;
    const content = mergeTexts(stack.splice(at + 1).map(toText));
    if (depth(content) >= DEPTH_MAX) {
      stack.push(...content);
      return false;
    }
    opening.count -= used;
    closing.count -= used;
    if (opening.count === 0) stack.pop();
    const kind = closing.character === "~" ? "struck" : used === 2 ? "strong" : "emphasis";
    stack.push({ kind, content });
    return true;
  }
  return false;
}

const depths = new WeakMap<Inline[], number>();

function depth(content: Inline[]): number {
  const known = depths.get(content);
  if (known !== undefined) return known;
  const deepest = content.reduce((most, node) => ("content" in node ? Math.max(most, 1 + depth(node.content)) : most), 0);
  depths.set(content, deepest);
  return deepest;
}

function toText(item: Item): Inline {
  if (item.kind === "mark") return { kind: "text", text: item.character.repeat(item.count) };
  if (item.kind === "bracket") return { kind: "text", text: item.image ? "![" : "[" };
  return item;
}

function mergeTexts(nodes: Inline[]): Inline[] {
  const result: Inline[] = [];
  for (const node of nodes) {
    const last = result[result.length - 1];
    if (node.kind === "text" && last?.kind === "text") result[result.length - 1] = { kind: "text", text: last.text + node.text };
    else result.push(node);
  }
  return result;
}

/** HTML does not allow links inside links. */
function withoutLinks(nodes: Inline[]): Inline[] {
  return mergeTexts(
    nodes.flatMap((node): Inline[] => {
      if (node.kind === "link") return withoutLinks(node.content);
      return "content" in node ? [{ ...node, content: withoutLinks(node.content) }] : [node];
    }),
  );
}

