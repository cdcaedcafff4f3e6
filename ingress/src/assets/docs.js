// Shows the OpenAPI document as a page. Everything is put in as text nodes, so that no text of the document is ever markup.
'use strict';

const METHODS = ['get', 'post', 'patch', 'put', 'delete'];
/** Schemas may refer to each other; deeper than this, a name is enough. */
const DEPTH_MAX = 4;
const IS_ADMIN = new URLSearchParams(location.search).has('admin');
const SOURCE = new URL(`api/${IS_ADMIN ? 'admin' : 'public'}/openapi.json`, document.baseURI);
/** Where there is room, the index is shown, and operations are open unless they are very many. */
const IS_WIDE = matchMedia('(min-width: 62rem)').matches;
const BASE = new URL('.', document.baseURI).href.replace(/\/$/, '');
let api;

// Set before the first paint, so that nothing moves.
document.documentElement.dataset.api = IS_ADMIN ? 'admin' : 'public';

function element(name, attributes, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes ?? {})) {
    if (value !== undefined && value !== false) made.setAttribute(key, value);
  }
  made.append(...children.flat(Infinity).filter((child) => child !== undefined && child !== null && child !== ''));
  return made;
}

/** The little markup that descriptions have: paragraphs, `code` and **weight**. */
function prose(text) {
  return (text ?? '').split(/\n{2,}/).filter(Boolean).map((paragraph) => element('p', {}, inline(paragraph)));
}

function inline(text) {
  return text.split(/(`[^`]+`|\*\*[^*]+\*\*)/).map((part) => {
    if (part.startsWith('`')) return element('code', {}, part.slice(1, -1));
    if (part.startsWith('**')) return element('strong', {}, part.slice(2, -2));
    return part;
  });
}

/** Returns the target of a reference, with the properties beside the reference. */
function resolve(node) {
  if (!node?.$ref) return node ?? {};
  const target = node.$ref.replace('#/', '').split('/').reduce((at, key) => at?.[key], api) ?? {};
  const { $ref, ...beside } = node;
  return { ...resolve(target), ...beside };
}

const nameOf = (node) => node?.$ref?.split('/').pop();

function typeOf(schema) {
  const name = nameOf(schema);
  const known = resolve(schema);
  const types = [known.type ?? []].flat();
  if (known.oneOf) return known.oneOf.map(typeOf).join(' or ');
  if (known.enum) return known.enum.map((value) => JSON.stringify(value)).join(' | ');
  if (types.includes('array')) return `array of ${typeOf(known.items)}`;
  if (name && types.includes('object')) return name;
  return types.join(' or ') || name || 'any';
}

function bounds(schema) {
  const known = resolve(schema);
  const range = (low, high, unit) => {
    if (low !== undefined && high !== undefined) return `${low} to ${high}${unit}`;
    if (high !== undefined) return `at most ${high}${unit}`;
    return low > 1 ? `at least ${low}${unit}` : undefined;
  };
  return [
    known.format,
    range(known.minimum, known.maximum, ''),
    range(known.minLength, known.maxLength, ' characters'),
    known.default !== undefined ? `default ${JSON.stringify(known.default)}` : undefined,
  ].filter(Boolean).join(', ');
}

function row(name, schema, needed, description, depth, place) {
  const inner = depth < DEPTH_MAX ? innerFields(schema, depth + 1) : [];
  return element('div', {},
    element('dt', {}, element('code', {}, name), needed ? element('span', { class: 'needed' }, ' required') : ''),
    element('dd', {}, element('span', { class: 'type' }, [place, typeOf(schema), bounds(schema)].filter(Boolean).join(' · ')),
      prose(description), inner));
}

/** The objects behind a type: itself, its items, or its alternatives. */
function innerFields(schema, depth) {
  const known = resolve(schema);
  if (known.items) return innerFields(known.items, depth);
  if (known.oneOf) {
    return known.oneOf.filter((one) => resolve(one).type !== 'null').flatMap((one) => {
      const fields = innerFields(one, depth);
      return fields.length ? [element('p', { class: 'caption' }, titleOf(one)), ...fields] : [];
    });
  }
  const { properties, required } = merged(known);
  const names = Object.keys(properties);
  if (!names.length) return [];
  const order = [...required.filter((name) => properties[name]), ...names.filter((name) => !required.includes(name))];
  return [element('dl', { class: 'rows' }, order.map((name) =>
    row(name, properties[name], required.includes(name), resolve(properties[name]).description, depth)))];
}

function titleOf(schema) {
  const part = [schema, ...(schema.allOf ?? [])].find(nameOf);
  return part ? nameOf(part) : 'One of them';
}

/** All fields of a schema and of the parts that it is made of. */
function merged(schema) {
  const parts = [schema, ...(schema.allOf ?? []).map(resolve)];
  return {
    properties: Object.assign({}, ...parts.map((part) => part.properties ?? {})),
    required: [...new Set(parts.flatMap((part) => part.required ?? []))],
  };
}

function copyButton(text, label) {
  const button = element('button', { type: 'button', 'aria-label': `Copy: ${label}` }, 'Copy');
  button.addEventListener('click', async () => {
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = 'Copied';
    } catch {
      button.textContent = 'Not copied';
    }
    setTimeout(() => { button.textContent = 'Copy'; }, 2000);
  });
  return button;
}

function sample(text, label, caption = 'Example') {
  return element('div', { class: 'sample' },
    element('div', { class: 'bar' }, element('span', {}, caption), copyButton(text, label)),
    element('pre', { tabindex: '0', role: 'group', 'aria-label': label }, element('code', {}, text)));
}

/** Puts the address of this installation into the programs of the quick start. */
function completeQuickStart() {
  for (const program of document.querySelectorAll('#quick-start pre[data-language]')) {
    const { language } = program.dataset;
    const complete = sample(program.textContent.replaceAll('BASE_URL', BASE), `Quick start in ${language}`, 'Request');
    complete.dataset.language = language;
    program.replaceWith(complete);
  }
}

const pretty = (value) => (typeof value === 'string' ? value : JSON.stringify(value, null, 2));

function curl(path, method, operation) {
  const filled = path.replace(/\{(\w+)\}/g, (_, name) =>
    (operation.parameters ?? []).find((one) => one.name === name)?.example ?? name);
  const lines = [`curl ${method === 'get' ? '' : `-X ${method.toUpperCase()} `}'${BASE}${filled}'`];
  const isOpen = operation.security?.some((one) => Object.keys(one).length === 0);
  if (!isOpen) lines.push(`-H 'Authorization: Bearer ${IS_ADMIN ? 'ADMIN_TOKEN' : 'svc_live_…'}'`);
  const body = Object.values(operation.requestBody?.content?.['application/json']?.examples ?? {})[0]?.value;
  if (body) lines.push("-H 'Content-Type: application/json'", `-d '${JSON.stringify(body).replaceAll("'", "'\\''")}'`);
  return lines.join(' \\\n  ');
}

function examplesOf(status, type, content) {
  const examples = Object.entries(content.examples ?? {}).map(([name, one]) => [name, resolve(one).value]);
  if (content.example !== undefined) examples.push(['', content.example]);
  return examples.map(([name, value]) => sample(pretty(value), `Example${name ? ` ${name}` : ''} as ${type}`, [status, type, name].join(' ')));
}

function media(type, content) {
  return [
    element('p', { class: 'caption' }, element('code', {}, type), ' ', typeOf(content.schema)),
    innerFields(content.schema, 1),
  ];
}

function section(title, children) {
  return children.length ? [element('h4', {}, title), ...children] : [];
}

function parameters(operation) {
  const rows = (operation.parameters ?? []).map(resolve).map((one) =>
    row(one.name, one.schema, one.required, one.description, 0, `in the ${one.in}`));
  return section('Parameters', rows.length ? [element('dl', { class: 'rows' }, rows)] : []);
}

function response(status, node) {
  const known = resolve(node);
  const headers = Object.entries(known.headers ?? {}).map(([name, header]) =>
    row(name, resolve(header).schema, false, resolve(header).description, DEPTH_MAX));
  const isGood = Number(status) < 400;
  const codes = Object.keys(known.content?.['application/problem+json']?.examples ?? {}).filter((one) => /^[A-Z_]+$/.test(one));
  const summary = isGood ? known.description : codes.join(', ') || 'without a code';
  return element('details', {},
    element('summary', {}, element('span', { class: `status ${isGood ? 'ok' : 'bad'}` }, status), inline(summary ?? '')),
    element('div', { class: 'body' },
      isGood ? '' : prose(known.description),
      Object.entries(known.content ?? {}).flatMap(([type, content]) => [media(type, content), isGood ? '' : examplesOf('', type, content)]),
      headers.length
        ? element('details', {}, element('summary', {}, 'Headers'), element('div', { class: 'body' }, element('dl', { class: 'rows' }, headers)))
        : ''));
}

/** A request, and the answers that the document shows for it. */
function samples({ path, method, operation }) {
  const answers = Object.entries(operation.responses).filter(([status]) => Number(status) < 300).flatMap(([status, node]) =>
    Object.entries(resolve(node).content ?? {}).flatMap(([type, content]) => examplesOf(status, type, content)));
  return element('div', { class: 'samples' }, sample(curl(path, method, operation), `Request of ${operation.operationId}`, 'Request'), answers);
}

function article(one) {
  const { path, method, operation } = one;
  const bodies = Object.entries(operation.requestBody?.content ?? {});
  // Further examples of a body; the first one is in the request.
  const others = bodies.flatMap(([type, content]) => examplesOf('', type, content).slice(1));
  const body = bodies.flatMap(([type, content]) => media(type, content));
  return element('article', { id: operation.operationId, class: 'operation' },
    element('details', { open: IS_WIDE && !IS_ADMIN && '' },
      element('summary', {},
        element('span', { class: `method ${method}` }, method), element('h3', {}, operation.summary ?? operation.operationId),
        element('span', { class: 'path' }, path)),
      element('div', { class: 'pair' },
        element('div', {},
          prose(operation.description),
          parameters(operation),
          section('Body', [...body, ...others]),
          section('Responses', Object.entries(operation.responses).map(([status, node]) => response(status, node)))),
        samples(one))));
}

function operations() {
  return Object.entries(api.paths).flatMap(([path, item]) =>
    METHODS.filter((method) => item[method]).map((method) => ({ path, method, operation: item[method] })));
}

function entry({ path, method, operation }) {
  const link = element('a', { href: `#${operation.operationId}` },
    element('span', { class: `method ${method}` }, method), operation.summary ?? operation.operationId);
  const item = element('li', {}, link);
  item.dataset.text = `${method} ${path} ${operation.summary} ${operation.operationId}`.toLowerCase();
  return item;
}

function find(text) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  for (const group of document.querySelectorAll('#index section')) {
    const items = [...group.querySelectorAll('li')];
    items.forEach((item) => { item.hidden = !words.every((word) => item.dataset.text.includes(word)); });
    group.hidden = items.every((item) => item.hidden);
  }
}

/** Marks the operation that is being read. */
function follow() {
  const links = new Map([...document.querySelectorAll('#index a')].map((link) => [link.hash.slice(1), link]));
  const watcher = new IntersectionObserver((seen) => {
    const first = seen.find((one) => one.isIntersecting);
    if (!first) return;
    links.forEach((link) => link.removeAttribute('aria-current'));
    links.get(first.target.id)?.setAttribute('aria-current', 'true');
  }, { rootMargin: '-10% 0px -80% 0px' });
  document.querySelectorAll('article').forEach((one) => watcher.observe(one));
}

/** Opens the operation that the address names. */
function reveal() {
  const named = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!named) return;
  const details = named.querySelector('details');
  if (details) details.open = true;
  named.scrollIntoView();
}

function show() {
  document.title = api.info.title;
  document.getElementById('source').href = SOURCE.href;
  document.getElementById('version').textContent = `Version ${api.info.version}`;
  completeQuickStart();
  const content = document.getElementById('content');
  document.getElementById('state').replaceWith(element('section', {}, prose(api.info.description)));
  const index = document.getElementById('index');
  index.open = IS_WIDE;
  for (const tag of api.tags) {
    const group = operations().filter(({ operation }) => operation.tags?.includes(tag.name));
    index.append(element('section', {}, element('h2', {}, tag.name), element('ul', {}, group.map(entry))));
    content.append(element('h2', {}, tag.name), ...prose(tag.description), ...group.map(article));
  }
  document.getElementById('filter').addEventListener('input', (event) => {
    index.open = true;
    find(event.target.value);
  });
  follow();
  // The place that the address names exists only now.
  addEventListener('hashchange', reveal);
  reveal();
}

async function read() {
  const answer = await fetch(SOURCE);
  if (!answer.ok) throw new Error(`status ${answer.status}`);
  return answer.json();
}

function fail(error) {
  const state = document.getElementById('state');
  const text = `The document could not be shown (${error.message}). Reload the page to try again.`;
  if (state) state.textContent = text;
  else document.getElementById('content').prepend(element('p', { role: 'alert' }, text));
}

const isParsed = new Promise((resolve) => { addEventListener('DOMContentLoaded', resolve); });
Promise.all([read(), isParsed]).then(([found]) => { api = found; show(); }).catch((error) => isParsed.then(() => fail(error)));
