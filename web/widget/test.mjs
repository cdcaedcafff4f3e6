// Tests of the parts that need no browser: Markdown parsing, complete translations and stored values.

import assert from "node:assert/strict";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

/** Imports a source module. */
async function load(entry) {
  const path = fileURLToPath(new URL(`src/${entry}`, import.meta.url));
  const { outputFiles } = await build({ entryPoints: [path], bundle: true, write: false, format: "esm", charset: "utf8" });
  return import(`data:text/javascript;base64,${Buffer.from(outputFiles[0].text).toString("base64")}`);
}

const { parse } = await load("markdown/blocks.ts");
const { parseLinkAddress, matchesAddress } = await load("markdown/links.ts");
const { languages } = await load("languages.ts");
const { findDueForm, asksForEmail } = await load("lead.ts");
const { readSettings } = await load("settings.ts");
const { webAddress } = await load("dom.ts");
const { Service } = await load("service.ts");
const { Conversation } = await load("conversation.ts");
const { Memory } = await load("memory.ts");
const { textsOf } = await load("files/texts.ts");
const { acceptedBy, formatBytes, parseLimits, typeOf } = await load("files/types.ts");
const { english, fill, chooseLanguage, translateDefaults } = await load("texts.ts");

/** Formats a tree as a short text: names of blocks and marks around their texts. */
function outline(nodes) {
  return nodes.map((node) => {
    const inner = node.content ?? node.blocks ?? [];
    switch (node.kind) {
      case "text": return node.text;
      case "break": return "/";
      case "code": return `code(${node.text})`;
      case "list": return `${node.start === null ? "ul" : `ol${node.start}`}(${node.items.map(outline).join("|")})`;
      case "table": return `table(${[node.head, ...node.rows].map((row) => row.map(outline).join(",")).join("|")})`;
      case "link": return `link[${node.address}](${outline(inner)})`;
      case "heading": return `h${node.level}(${outline(inner)})`;
      default: return `${node.kind}(${outline(inner)})`;
    }
  }).join("");
}

const read = (text) => outline(parse(text).map(({ block }) => block));

test("blocks are what they look like", () => {
  for (const [text, expected] of [
    ["one\ntwo\n\nthree", "paragraph(one/two)paragraph(three)"],
    ["# A #\n## B", "h1(A)h2(B)"],
    ["```js\na *b*\n```\nc", "code(a *b*)paragraph(c)"],
    ["```\nstill open", "code(still open)"],
    ["- a\n- b\n  - c", "ul(paragraph(a)|paragraph(b)ul(paragraph(c)))"],
    ["3. a\n4. b", "ol3(paragraph(a)|paragraph(b))"],
    ["- a\n\n  more\n- b", "ul(paragraph(a)paragraph(more)|paragraph(b))"],
    ["> a\n> - b", "quote(paragraph(a)ul(paragraph(b)))"],
    ["a | b\n--- | ---\n1 | 2", "table(a,b|1,2)"],
    ["---", "rule()"],
    ["#no heading", "paragraph(#no heading)"],
    ["a\n***\nb", "paragraph(a)rule()paragraph(b)"],
  ]) assert.equal(read(text), expected, text);
});

test("marks are what they look like", () => {
  for (const [text, expected] of [
    ["**a** *b* ~~c~~", "strong(a) emphasis(b) struck(c)"],
    ["***a***", "emphasis(strong(a))"],
    ["snake_case_name and 2*3*4", "snake_case_name and 2emphasis(3)4"],
    ["**open", "**open"],
    ["`a*b*` ``c`d``", "code(a*b*) code(c`d)"],
    ["[a](https://x.example)", "link[https://x.example](a)"],
    ["[**a**](https://x.example 'title')", "link[https://x.example](strong(a))"],
    ["![cat](https://x.example/c.png)", "link[https://x.example/c.png](cat)"],
    ["see https://x.example/a_(b).", "see link[https://x.example/a_(b)](https://x.example/a_(b))."],
    ["<https://x.example>", "link[https://x.example](https://x.example)"],
    ["[https://x.example/?a](https://y.example)", "link[https://y.example](https://x.example/?a)"],
    ["[a] (b)", "[a] (b)"],
    ["\\*a\\*", "*a*"],
    ["[[a](https://x.example)](https://y.example)", "link[https://y.example](a)"],
    ["<b>a</b>", "<b>a</b>"],
  ]) assert.equal(read(text), `paragraph(${expected})`, text);
});

test("only a text that is the address or its host tells where a link leads", () => {
  for (const [said, address, tells] of [
    ["shop.example", "https://shop.example/tea", true],
    ["https://shop.example", "https://shop.example/", true],
    ["https://Shop.example/tea?a=1", "https://Shop.example/tea?a=1", true],
    ["https://shop.example:8443/", "https://shop.example:8443/", true],
    ["our shop", "https://shop.example/", false],
    ["paypal.com (evil.example)", "https://evil.example/x", false],
    ["https://bank.example/?x=evil.example", "https://evil.example/login", false],
    ["https://paypal.com@evil.example/", "https://paypal.com@evil.example/", false],
    ["evil.example", "https://paypal.com@evil.example/", false],
    ["https://\u0430pple.example/", "https://\u0430pple.example/", false],
  ]) assert.equal(matchesAddress(said, address, parseLinkAddress(address)), tells, said);
  for (const address of ["javascript:alert(1)", "data:text/html,x", "/tea", "tea"]) assert.equal(parseLinkAddress(address), null, address);
});

test("the time that a text takes grows with its length and no faster", () => {
  const long = 64 * 1024;
  for (const piece of ["*", "**a ", "_a_ ", "[", "[](", "](", "`", "`a``", "> ", "- ", "- \n\n", "|", "a|b\n", "<", "https://", "\\", "![", "~~", "1. a\n", "#", "[a](b \"", "***a"]) {
    const text = piece.repeat(Math.ceil(long / piece.length));
    const began = performance.now();
    parse(text);
    const took = performance.now() - began;
    assert.ok(took < 1500, `${JSON.stringify(piece)} took ${Math.round(took)} ms`);
  }
});

test("no text nests deeper than a browser can draw", () => {
  const depth = (value) => (value && typeof value === "object" ? 1 + Math.max(0, ...Object.values(value).map(depth)) : 0);
  for (const piece of ["> ", "- ", "*a ", "**a *b ", "[", "1. "]) {
    const closing = piece.includes("*") ? "a** a* ".repeat(5000) : "";
    assert.ok(depth(parse(piece.repeat(5000) + closing)) < 100, piece);
  }
});

test("every language has every text, with the same blanks", () => {
  const names = Object.keys(english);
  const spoken = languages(names);
  assert.equal(Object.keys(spoken).length, 11);
  const blanks = (text) => (text.match(/\{\w+\}/g) ?? []).sort().join();
  for (const [code, texts] of Object.entries(spoken)) {
    for (const name of names) {
      assert.ok(texts[name]?.trim(), `${code}: ${name}`);
      assert.equal(blanks(texts[name]), blanks(english[name]), `${code}: ${name}`);
    }
  }
  assert.equal(fill("{n} of {m}", { n: 1 }), "1 of {m}");
});

test("every language has every text about files, with the same blanks", () => {
  const english = textsOf("en");
  const blanks = (text) => (text.match(/\{\w+\}/g) ?? []).sort().join();
  for (const code of Object.keys(languages([]))) {
    const texts = textsOf(code);
    assert.notEqual(texts.attach, english.attach, code);
    for (const [name, text] of Object.entries(english)) assert.equal(blanks(texts[name] ?? "none"), blanks(text), `${code}: ${name}`);
  }
});

test("a file has the type of its ending if the browser does not know it", () => {
  for (const [name, type, expected] of [
    ["a.png", "image/png", "image/png"],
    ["orders.CSV", "application/vnd.ms-excel", "text/csv"],
    ["notes.md", "", "text/markdown"],
    ["photo", "image/jpeg", "image/jpeg"],
    ["page.html", "text/html", "text/html"],
    ["README", "", ""],
  ]) assert.equal(typeOf({ name, type }), expected, name);
  assert.equal(acceptedBy(["application/pdf", "image/jpeg"]), "application/pdf,.pdf,image/jpeg,.jpg,.jpeg,.jpe,.jfif");
  for (const value of [null, undefined, {}, { maxBytes: 1, types: [] }, { maxBytes: "1", types: ["a"] }, { maxBytes: 1, types: "a" }]) assert.equal(parseLimits(value), null);
  assert.deepEqual(parseLimits({ maxBytes: 1, types: ["a", 1] }), { maxBytes: 1, types: ["a"] });
});

test("sizes are short in every language", () => {
  for (const [bytes, code, expected] of [
    [1, "en", "1 byte"],
    [999_499, "en", "999 kB"],
    [999_500, "en", "1 MB"],
    [10_000_000, "en", "10 MB"],
    [1_250_000, "de", "1,3 MB"],
    [10_000_000, "fr", "10 Mo"],
  ]) assert.equal(formatBytes(bytes, code).replace(/\s/g, " "), expected);
});

test("the first language that is spoken is taken, and English is never far", async () => {
  const load = async () => ({ languages });
  const chosen = async (...wishes) => (await chooseLanguage(wishes, load)).code;
  assert.equal(await chosen("de-CH"), "de");
  assert.equal(await chosen("xx", "pt_BR"), "pt");
  assert.equal(await chosen("xx", "en", "de"), "en");
  assert.equal(await chosen("xx"), "en");
  const failing = await chooseLanguage(["de"], () => Promise.reject(new Error("away")));
  assert.equal(failing.code, "en");
});

test("texts that nobody chose are in the page's language, and those that somebody chose stay", () => {
  const german = { code: "de", direction: "ltr", texts: languages(Object.keys(english)).de };
  const fresh = { welcomeMessage: english.welcome, placeholderText: english.placeholder, triggerText: english.trigger, offlineMessage: english.away };
  const { welcome, placeholder, trigger, away } = german.texts;
  assert.deepEqual(translateDefaults(fresh, german), { welcomeMessage: welcome, placeholderText: placeholder, triggerText: trigger, offlineMessage: away });
  const chosen = { welcomeMessage: "", placeholderText: "Ask!", triggerText: "", offlineMessage: "Back on Monday." };
  assert.deepEqual(translateDefaults(chosen, german), chosen);
});

test("a lead form is due at its trigger until it is answered", () => {
  const form = (trigger, required = false) => ({ consent: { text: "ok" }, fields: [{ name: "a", type: "email", required }], trigger, afterReplies: 2 });
  const entry = (role, state, cards = null) => ({ id: "msg_1", role, state, cards });
  const reply = entry("assistant", "final");
  const shown = entry("assistant", "final", { ...form(), type: "lead-form" });
  const due = (...asked) => {
    const found = findDueForm(...asked);
    return found && [found.isFirst, found.canSkip, found.skipKey];
  };
  const later = [false, false, "skipped"];
  for (const [configured, entries, answer, expected] of [
    [null, [], null, null],
    [{ ...form("before-first-message"), consent: null }, [], null, null],
    [{ ...form("before-first-message"), fields: [] }, [], null, null],
    [form("unknown"), [shown], null, null],
    [form("before-first-message"), [], null, [true, true, "skipped"]],
    [form("before-first-message", true), [entry("user", "unsent")], null, [true, false, "skipped"]],
    [form("before-first-message"), [entry("user", "final")], null, null],
    [form("before-first-message"), [], "skipped", null],
    [form("before-first-message"), [], "given", null],
    [form("after-replies", true), [reply, reply], null, later],
    [form("after-replies"), [reply, entry("assistant", "stopped")], null, null],
    [form("tool", true), [reply], null, null],
    [form("tool", true), [reply, shown, reply], null, [false, false, "msg_1"]],
    [form("tool"), [shown], "msg_0", [false, true, "msg_1"]],
    [form("tool"), [shown], "msg_1", null],
    [form("after-replies"), [shown], null, null],
    [null, [shown], null, null],
  ]) assert.deepEqual(due(configured, entries, answer), expected, JSON.stringify([configured, entries, answer]));
  assert.equal(asksForEmail(form("tool")), true);
  assert.equal(asksForEmail({}), false);
});

test("visitors learn of the machine unless the service says otherwise, and only web addresses are links", () => {
  const notice = (value) => {
    const { disclosure, disclosureText, privacyLink } = readSettings({ notice: value });
    return [disclosure, disclosureText, privacyLink];
  };
  assert.deepEqual(notice(undefined), [true, "", ""]);
  assert.deepEqual(notice({ disclosure: "no", text: 1, privacyLink: null }), [true, "", ""]);
  assert.deepEqual(notice({ disclosure: false, text: "a", privacyLink: "b" }), [false, "a", "b"]);
  for (const address of ["javascript:alert(1)", "data:text/html,x", "/privacy", "mailto:a@b.example", ""]) assert.equal(webAddress(address), null, address);
  assert.equal(webAddress("https://shop.example/privacy"), "https://shop.example/privacy");
});

test("no conversation is stored before the visitor writes, and two tabs begin the same one", async (context) => {
  // A request without a reply would keep the process alive until it times out.
  context.mock.timers.enable({ apis: ["setTimeout"] });
  const stored = new Map();
  globalThis.localStorage = {
    getItem: (name) => stored.get(name) ?? null,
    setItem: (name, value) => stored.set(name, value),
    removeItem: (name) => stored.delete(name),
  };
  const sent = [];
  context.mock.method(globalThis, "fetch", async (url, { body }) => {
    const asked = JSON.parse(body);
    if (!url.endsWith("/api/widget/token")) {
      sent.push(asked.sessionId);
      // The reply never comes.
      return new Promise(() => undefined);
    }
    const visitorId = asked.visitorSecret ?? "vis_1";
    return Response.json({ token: "svt_1", expiresAt: "2999-01-01T00:00:00Z", visitorId, visitorSecret: visitorId });
  });
  const view = new Proxy({}, { get: () => () => undefined });
  const tabs = [];
  for (const _ of ["first", "second"]) {
    const memory = new Memory("agt_1");
    const service = new Service("", "agt_1", null, memory, () => undefined);
    await service.start();
    tabs.push(new Conversation(service, memory, { tell: () => undefined }, view));
  }
  assert.deepEqual([...stored.keys()], ["switchboard:agt_1:secret"]);
  for (const tab of tabs) {
    tab.send("hello");
    // The other tab does not see the change yet.
    stored.delete("switchboard:agt_1:session");
  }
  while (sent.length < 2) await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(sent, ["vis_1", "vis_1"]);
});
