// Stands in for the service while an agent's form is open: the real widget on this page gets the settings that the form
// holds, saved or not, and a short conversation to draw. Nothing leaves this page, and its policy sees to that.
(() => {
  "use strict";
  const AGENT = "preview";
  const LATER = new Date(Date.now() + 864e5).toISOString();
  const MINUTE_MS = 60_000;

  /** Latest settings of the form, and those that the widget already has. */
  let form, given;
  let begin;
  const begun = new Promise((resolve) => (begin = resolve));

  // A page without an origin has no storage; this one holds what a visitor's would after the conversation below.
  const held = new Map([[`switchboard:${AGENT}:session`, "preview"]]);
  const storage = {
    getItem: (name) => held.get(name) ?? null,
    setItem: (name, value) => held.set(name, value),
    removeItem: (name) => held.delete(name),
  };
  for (const name of ["localStorage", "sessionStorage"]) Object.defineProperty(window, name, { value: storage });

  const said = (id, role, content, minutesAgo) => {
    const timestamp = new Date(Date.now() - minutesAgo * MINUTE_MS).toISOString();
    return { id, role, content, status: "completed", timestamp };
  };
  const messages = [
    said("1", "user", "What can you do for me?", 2),
    said("2", "assistant", "I can **answer** and **suggest**:\n\n- what fits you\n- what it costs\n\nJust ask!", 1),
  ];

  window.fetch = async (address) => {
    await begun;
    const { pathname } = new URL(address);
    if (pathname === "/api/widget/token") {
      given = form;
      return Response.json({ token: AGENT, visitorSecret: AGENT, expiresAt: LATER, ...form.answer });
    }
    if (pathname.includes("/conversations/")) {
      return Response.json({ messages, totalMessages: messages.length, metadata: {}, activeMessageId: null });
    }
    return Response.json({ detail: "a preview answers nobody" }, { status: 404 });
  };

  const follow = async () => {
    const widgets = window.SwitchboardWidget;
    const widget = widgets.get(AGENT);
    if (held.get(`switchboard:${AGENT}:open`) !== wanted()) {
      // Opening it would take the focus out of the form; one that was open begins open.
      widget.destroy();
      begins();
      return;
    }
    while (given !== form) await widget.refresh();
  };
  const wanted = () => (form.isOpen ? "yes" : "no");
  const begins = () => {
    held.set(`switchboard:${AGENT}:open`, wanted());
    window.SwitchboardWidget.create({ agentId: AGENT });
    window.SwitchboardWidget.on("ready", () => void follow());
  };
  window.SwitchboardWidget = [(widgets) => widgets.on("ready", () => void follow())];

  window.addEventListener("message", ({ source, data }) => {
    if (source !== window.parent) return;
    const isFirst = form === undefined;
    form = data;
    if (isFirst) {
      held.set(`switchboard:${AGENT}:open`, wanted());
      begin();
    } else if (window.SwitchboardWidget.get?.(AGENT)) {
      void follow();
    }
  });
})();
