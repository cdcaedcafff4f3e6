// The door of the development server: it forwards to a running service, and where SWITCHBOARD_ADMIN_TOKEN is set it
// signs everybody in as its owner. It is no part of what is built.
import type { Plugin } from 'vite';

const SERVICE = process.env.SWITCHBOARD_URL ?? 'http://127.0.0.1:8080';
const TOKEN = process.env.SWITCHBOARD_ADMIN_TOKEN;
const RIGHTS = ['readConfiguration', 'configure', 'manageKeys', 'readConversations', 'manageUsers', 'readAudit'];

async function session(): Promise<object> {
  const answer = await fetch(`${SERVICE}/api/admin/organizations`, { headers: { authorization: `Bearer ${TOKEN}` } });
  const organizations = (await answer.json()) as { items: object[] };
  const user = { id: 'usr_dev', email: 'dev@localhost', name: 'Development', role: 'owner' };
  return { user, organization: organizations.items[0], rights: RIGHTS };
}

export function devDoor(): Plugin {
  const headers = TOKEN === undefined ? {} : { authorization: `Bearer ${TOKEN}` };
  return {
    name: 'dev-door',
    config: () => ({
      server: { proxy: { '/api/admin': { target: SERVICE, headers }, '/api': { target: SERVICE } } },
    }),
    configureServer(server) {
      if (TOKEN === undefined) return;
      server.middlewares.use('/api/dashboard/session', (_request, response, next) => {
        session().then((body) => {
          response.setHeader('content-type', 'application/json');
          response.end(JSON.stringify(body));
        }, next);
      });
    },
  };
}
