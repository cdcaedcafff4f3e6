// Tags of the widget, for the usual places.
import { PUBLIC_ORIGIN } from '../../api/public-origin';
import type { Snippet } from '../../components/Snippets';

const SCRIPT = `${PUBLIC_ORIGIN}/v1/widget.js`;

export function widgetSnippets(agentId: string): [Snippet, ...Snippet[]] {
  const tag = `<script async src="${SCRIPT}" data-agent-id="${agentId}"></script>`;
  return [
    { place: 'HTML', code: tag, steps: ['Paste this into the page, before </body>.', 'Publish the page and open it.'] },
    {
      place: 'React, Next.js',
      steps: ['Add this component to the layout that all pages share.'],
      code: `import { useEffect } from "react";

export function ChatWidget() {
  useEffect(() => {
    const script = document.createElement("script");
    script.src = "${SCRIPT}";
    script.dataset.agentId = "${agentId}";
    document.body.append(script);
    return () => {
      script.remove();
      window.SwitchboardWidget?.get?.("${agentId}")?.destroy();
    };
  }, []);
  return null;
}`,
    },
    {
      place: 'Shopify',
      code: tag,
      steps: [
        'Open Online Store → Themes, and at your theme ⋯ → Edit code.',
        'Open layout/theme.liquid and paste this before </body>.',
        'Save. Add your shop’s domain to the allowed domains here, the .myshopify.com one too.',
      ],
    },
    {
      place: 'WordPress, WooCommerce',
      code: `add_action('wp_footer', function () {
  echo '${tag}';
});`,
      steps: [
        'Paste this into functions.php of a child theme, or into a plugin for code snippets.',
        'Empty the cache of the page, if a plugin keeps one.',
      ],
    },
    {
      place: 'Google Tag Manager',
      // The manager removes unknown attributes of script tags.
      code: `<script>
  (function () {
    var script = document.createElement("script");
    script.async = true;
    script.src = "${SCRIPT}";
    script.setAttribute("data-agent-id", "${agentId}");
    document.body.appendChild(script);
  })();
</script>`,
      steps: [
        'Create a tag of the type Custom HTML and paste this.',
        'Choose the trigger All Pages.',
        'Submit the container.',
      ],
    },
  ];
}
