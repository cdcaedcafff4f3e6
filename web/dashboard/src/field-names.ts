// Names of fields for people: `widget.autoOpenDelay` is “Widget: auto open delay”.

/** Fields whose names in the interface differ from those in the API. */
const NAMES: Record<string, string> = {
  apiKey: 'API key',
  allowedDomains: 'Allowed domains',
  ecommerce: 'Products',
  'features.enableFileUpload': 'File uploads',
  fallbackProvider: 'Fallback',
  'files.maxBytes': 'Largest file',
  'files.types': 'Accepted types of files',
  'limits.maxMessageLength': 'Maximum message length',
  'limits.rateLimitPerMinute': 'Messages per minute',
  maxOutputTokens: 'Maximum reply length',
  onDisconnect: 'When a client disconnects',
  placeholderText: 'Input placeholder',
  'widget.triggerText': 'Button text',
};

export function fieldName(path: string): string {
  const known = NAMES[path];
  if (known !== undefined) return known;
  const [first = '', ...rest] = path.split('.').map((part) => NAMES[part] ?? words(part));
  return rest.length === 0 ? first : `${first}: ${rest.join(', ').toLowerCase()}`;
}

function words(name: string): string {
  const spaced = name.replace(/(?<=[a-z])(?=[A-Z])/g, ' ').toLowerCase();
  return spaced.charAt(0).toUpperCase() + spaced.slice(1);
}
