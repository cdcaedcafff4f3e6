// The script that pages embed: makes a widget for its own tag, and the object that pages talk to.

import type { EventName, Events } from "./emitter.ts";
import type { Draw } from "./log.ts";
import { type Options, type Parts, Widget } from "./widget.ts";

declare const PANEL_FILE: string;
declare const MARKDOWN_FILE: string;
declare const LANGUAGES_FILE: string;
declare const VERSION: string;

class SwitchboardWidgets {
  readonly version = VERSION;
  private readonly widgets: Widget[] = [];

  /** Makes a widget; one for each agent. */
  create(options: Options, parts: Parts = ownParts): Widget {
    const known = this.get(options.agentId);
    if (known) return known;
    const widget = new Widget(options, parts, (changed) => this.arrange(changed));
    this.widgets.push(widget);
    // A body is where it stands, and a script in the head comes before that.
    if (document.body) void widget.start();
    else document.addEventListener("DOMContentLoaded", () => void widget.start(), { once: true });
    return widget;
  }

  /** The widget of an agent; the first one, if none is named. */
  get(agentId?: string): Widget | undefined {
    return this.widgets.find((widget) => agentId === undefined || widget.options.agentId === agentId);
  }

  /** Makes a call at once: what pages write before the script is there works afterwards too. */
  push(call: (widgets: SwitchboardWidgets) => void): void {
    call(this);
  }

  open(agentId?: string): void {
    this.get(agentId)?.open();
  }

  close(agentId?: string): void {
    this.get(agentId)?.close();
  }

  toggle(agentId?: string): void {
    this.get(agentId)?.toggle();
  }

  send(text: string, agentId?: string): void {
    this.get(agentId)?.send(text);
  }

  on<N extends EventName>(name: N, listener: (event: Events[N]) => void, agentId?: string): () => void {
    return this.get(agentId)?.on(name, listener) ?? (() => false);
  }

  destroy(agentId?: string): void {
    this.get(agentId)?.destroy();
  }

  /** Widgets in one corner stand beside each other, and only one of them is open. */
  private arrange(changed: Widget): void {
    if (!changed.host.isConnected) {
      const at = this.widgets.indexOf(changed);
      if (at >= 0) this.widgets.splice(at, 1);
    }
    for (const widget of this.widgets) {
      const neighbours = this.widgets.filter((other) => other.host.isConnected && other.corner === widget.corner);
      widget.stack(Math.max(0, neighbours.indexOf(widget)));
      if (changed.isShown && widget !== changed && widget.isShown && widget.corner === changed.corner) widget.close();
    }
  }
}

const script = document.currentScript as HTMLScriptElement | null;
const base = (script?.src ?? location.href).replace(/\/v1\/[^/]*(\/[^/]*)?$/, "");
const ownParts: Parts = {
  base,
  panel: part<typeof import("./panel.ts")>(PANEL_FILE),
  markdown: part<{ render: Draw }>(MARKDOWN_FILE),
  languages: part<typeof import("./languages.ts")>(LANGUAGES_FILE),
};

/** Loads a part when it is first asked for, and again if that failed. */
function part<T>(file: string): () => Promise<T> {
  let loading: Promise<T> | null = null;
  let tries = 0;
  return () => {
    // Some browsers remember for ever that an address failed.
    const address = `${base}/v1/widget/${file}${tries > 0 ? `?try=${tries}` : ""}`;
    loading ??= (import(address) as Promise<T>).catch((error: unknown) => {
      loading = null;
      tries += 1;
      throw error;
    });
    return loading;
  };
}

const page = window as { SwitchboardWidget?: unknown };
const before = page.SwitchboardWidget;
// A second tag with this script finds the object that the first one made.
const widgets = before && typeof before === "object" && "create" in before ? (before as SwitchboardWidgets) : new SwitchboardWidgets();
page.SwitchboardWidget = widgets;
const { agentId, apiKey, baseUrl, language } = script?.dataset ?? {};
if (agentId) widgets.create({ agentId, apiKey: apiKey ?? null, baseUrl: baseUrl ?? null, language: language ?? null });
// Calls that the page queued before the script was there.
if (Array.isArray(before)) for (const call of before) if (typeof call === "function") call(widgets);
