// Public base URL of the service; the dashboard may be on another port.
const told = document.querySelector<HTMLMetaElement>('meta[name="public-api"]')?.content ?? '';

// The development server does not replace the placeholder.
export const PUBLIC_ORIGIN = told === '' || told.startsWith('@') ? window.location.origin : told;
