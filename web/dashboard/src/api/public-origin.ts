// Where visitors reach the service: the dashboard may be on a port of its own.
const told = document.querySelector<HTMLMetaElement>('meta[name="public-api"]')?.content ?? '';

// The development server leaves the mark in the page as it is.
export const PUBLIC_ORIGIN = told === '' || told.startsWith('@') ? window.location.origin : told;
