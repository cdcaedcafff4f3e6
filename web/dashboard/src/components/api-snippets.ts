// Calls of the chat API, for servers.
import { PUBLIC_ORIGIN } from '../api/public-origin';
import type { Snippet } from './Snippets';

const STEPS = [
  'Create an API key under Settings, with the scope “chat”.',
  'Call the API from your server, never from a page.',
];

/** Returns calls of an agent or a team. */
export function apiSnippets(kind: 'agents' | 'teams', id: string): [Snippet, ...Snippet[]] {
  const address = `${PUBLIC_ORIGIN}/api/public/${kind}/${id}/chat`;
  return [
    {
      place: 'curl',
      steps: STEPS,
      code: `curl -N ${address} \\
  -H "Authorization: Bearer $SWITCHBOARD_KEY" \\
  -H "Content-Type: application/json" \\
  -d '{"message": "Hello", "sessionId": "visitor-1"}'`,
    },
    {
      place: 'JavaScript',
      steps: STEPS,
      code: `const reply = await fetch("${address}", {
  method: "POST",
  headers: {
    authorization: \`Bearer \${process.env.SWITCHBOARD_KEY}\`,
    "content-type": "application/json",
  },
  body: JSON.stringify({ message: "Hello", sessionId: "visitor-1" }),
});
for await (const text of reply.body.pipeThrough(new TextDecoderStream())) process.stdout.write(text);`,
    },
    {
      place: 'Python',
      steps: STEPS,
      code: `import json, os, urllib.request

request = urllib.request.Request(
    "${address}",
    data=json.dumps({"message": "Hello", "sessionId": "visitor-1"}).encode(),
    headers={
        "Authorization": f"Bearer {os.environ['SWITCHBOARD_KEY']}",
        "Content-Type": "application/json",
    },
)
with urllib.request.urlopen(request) as reply:
    print(reply.read().decode())`,
    },
  ];
}
